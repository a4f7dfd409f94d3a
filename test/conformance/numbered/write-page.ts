// Writes docs/translation-coverage.md anew: `bun test/conformance/numbered/write-page.ts`.

import { pagePath, readNamed, renderPage } from './page.ts'

await Bun.write(pagePath, renderPage(await readNamed()))
