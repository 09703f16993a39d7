// Unpacks the Chromium of @sparticuz/chromium, with the libraries that it needs, into TMPDIR.
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
const require = createRequire(join(process.cwd(), 'package.json'))
const entry = require.resolve('@sparticuz/chromium')
const { inflate } = await import(entry)
for (const file of ['chromium.br', 'fonts.tar.br', 'swiftshader.tar.br', 'al2023.tar.br']) {
  await inflate(join(dirname(entry), '..', 'bin', file))
}
