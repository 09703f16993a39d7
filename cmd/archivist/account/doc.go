// Package account has the commands by which a person signs in, signs out, and sees who they are. What is kept of it
// is in pkg/kernel/signin; package command sends the token with each request.
package account
