// Writes src/catalog/data/models.json from scripts/catalog-sources/ and the price package: `bun run
// scripts/write-catalog.ts`. Run it after a change there; a test says when it was forgotten.

import { join } from 'node:path'
import { composeCatalog } from './compose-catalog.ts'

const path = join(import.meta.dir, '..', 'src', 'catalog', 'data', 'models.json')
const text = await composeCatalog()
await Bun.write(path, text)
console.log(`${path}: ${text.split('\n').length - 3} models, ${text.length} bytes`)
