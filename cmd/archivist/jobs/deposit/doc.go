// Package deposit makes a deposit of files of this computer: it lists and checks them (scan.go), computes
// their digests (digest.go), and sends to an upload of the archive what is not there yet (send.go, round.go,
// request.go). What that is, and the manifests that list the files, the package plan plans. It knows no command line.
//
//	d, err := deposit.Scan(deposit.Options{Sources: []string{"letters"}})
//	…                                                      // d.Problems: nothing is sent
//	d.Digest(ctx, 4, progress)                             // d.Problems again
//	plan, err := d.Plan(source.NoUpload, "")               // what will be sent, and what is submitted
//	upload, err := client.OpenUpload(ctx, plan.Request("maps", false), plan.Key("maps", ""))
//	plan, err = d.Plan(upload.ID, "")
//	sender.Send(ctx, plan)
//
// What is sent is named by its content. So the same deposit, made again after an interruption, gets the same upload and
// sends only what is missing; nothing is kept on this computer for that.
package deposit
