// Everything is relative to the page: the API does not know under which path a gateway
// serves it. Nothing is asked for elsewhere; the page's policy would refuse it.
const deployment = new URL('.', document.baseURI).href.replace(/\/$/, '')
Scalar.createApiReference('#reference', {
  url: 'openapi.json',
  servers: [{ url: deployment, description: 'This deployment' }],
  metaData: { title: 'Archivist API' },
  favicon: 'docs/icon.svg',
  documentDownloadType: 'direct',
  defaultOpenAllTags: true,
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
})
