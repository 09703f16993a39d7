// Package account has the commands by which a person signs in, signs out, and sees who they are, and those for the
// deployment's own tokens. What is kept of a session
// is in pkg/kernel/signin; package command sends the token with each request.
package account
