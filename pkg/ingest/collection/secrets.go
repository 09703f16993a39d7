package collection

// SecretPrefix begins the names of secrets that functions may read.
const SecretPrefix = "archivist/"

// TaskSecretPrefix begins the names of those that tasks of archives may name: no callback is signed with one.
const TaskSecretPrefix = SecretPrefix + "tasks/"

// SourceSecretPrefix begins the names of those that sources are authorised by: no callback is signed with one.
const SourceSecretPrefix = SecretPrefix + "sources/"

// EZIDSecret is the name of the secret of EZID's user; see fetch.Authorization.
const EZIDSecret = SecretPrefix + "ezid"
