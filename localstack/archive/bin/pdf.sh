#!/bin/sh
# Writes a PDF with one page for each text file that is named.
LC_ALL=C awk '
function object(text) { offset[++n] = at; say(n " 0 obj\n" text "\nendobj\n") }
function say(text) { printf "%s", text; at += length(text) }
function page() {
  if (lines != "") {
    body = "BT /F1 12 Tf 72 760 Td 16 TL\n" lines "ET"
    stream[++pages] = "<< /Length " length(body) " >>\nstream\n" body "\nendstream"
  }
  lines = ""
}
FNR == 1 { page() }
{ gsub(/[\\()]/, "\\\\&"); lines = lines "(" $0 ") Tj T*\n" }
END {
  page()
  say("%PDF-1.4\n")
  object("<< /Type /Catalog /Pages 2 0 R >>")
  for (i = 1; i <= pages; i++) kids = kids (3 + 2 * i - 1) " 0 R "
  object("<< /Type /Pages /Kids [ " kids "] /Count " pages " >>")
  object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
  for (i = 1; i <= pages; i++) {
    object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents " \
      (n + 2) " 0 R >>")
    object(stream[i])
  }
  start = at
  say("xref\n0 " (n + 1) "\n0000000000 65535 f \n")
  for (i = 1; i <= n; i++) say(sprintf("%010d 00000 n \n", offset[i]))
  say("trailer << /Size " (n + 1) " /Root 1 0 R >>\nstartxref\n" start "\n%%EOF\n")
}' "$@"
