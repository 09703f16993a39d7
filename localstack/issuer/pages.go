package issuer

import (
	"html/template"
	"net/http"
)

// page is what a person sees. Without an Action it has no form.
type page struct {
	Title  string
	Text   string
	Action string
	Hidden map[string]string
	Users  []User
	Device bool
	Code   string // of a device
}

// pages is the template of all pages. There is no script in them.
var pages = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}} - Archivist on this machine</title>
<style>
body { font: 1rem/1.5 sans-serif; margin: 3rem auto; max-width: 34rem; padding: 0 1rem }
label { display: block; padding: .2rem 0 }
button { font: inherit; margin: 1rem 1rem 0 0; padding: .3rem 1rem }
.local { border-left: .3rem solid; padding-left: 1rem }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{- if .Action}}
<form method="post" action="{{.Action}}">
{{- range $name, $value := .Hidden}}
<input type="hidden" name="{{$name}}" value="{{$value}}">
{{- end}}
{{- if .Device}}
<p><label>Code <input name="user_code" value="{{.Code}}" required autocomplete="off"></label></p>
{{- end}}
<fieldset>
<legend>You are</legend>
{{- range .Users}}
<label><input type="radio" name="user" value="{{.Subject}}"> {{.Name}}</label>
{{- end}}
</fieldset>
<button name="answer" value="yes">Agree</button>
<button name="answer" value="no">Refuse</button>
</form>
{{- end}}
<p class="local">This issuer is for trying Archivist on this machine. It asks for no password: who can open
this page can be anybody. A deployment has another one.</p>
</body>
</html>
`))

// show writes a page. Nothing else can be loaded by it, and no other page can frame it.
func show(w http.ResponseWriter, status int, p page) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = pages.Execute(w, p) // the browser may be gone
}

// refusePage tells a person what is wrong.
func refusePage(w http.ResponseWriter, text string) {
	show(w, http.StatusBadRequest, page{Title: "Not possible", Text: text})
}
