// Creates the data folder of a gateway that an independent benchmark starts, with a first key that is known beforehand: a
// gateway chooses the secrets of its keys, but a harness sends a fixed one, so the stored verifier is replaced.
//   bun run bench/manifest/create-data.ts FOLDER KEY

import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openDataFolder } from '../../src/store/data-folder.ts'
import { createVerifier, hasApiKeyForm, lastFour } from '../../src/tenancy/api-key.ts'
import { deriveSubkey, loadMasterSecret } from '../../src/tenancy/secrets.ts'
import { launch } from '../contenders/launch.ts'

const [path, key = ''] = process.argv.slice(2)
if (path === undefined || !hasApiKeyForm(key)) {
  console.error('Usage: bun run bench/manifest/create-data.ts FOLDER KEY')
  process.exit(2)
}
const data = resolve(path)
mkdirSync(data, { recursive: true, mode: 0o700 })
const launched = await launch({
  name: 'tollgate',
  folder: data,
  command: [join(import.meta.dir, '..', '..', 'bin', 'tollgate')],
  environment: { TOLLGATE_PORT: '0', TOLLGATE_DATA: data, TOLLGATE_LOG: 'json' },
})
if ('failed' in launched) throw new Error(launched.failed)
await launched.stop()

const folder = openDataFolder(data, console.error)
const computeVerifier = createVerifier(deriveSubkey(loadMasterSecret(undefined, folder), 'api-key-pepper'))
using database = new Database(folder.file('tollgate.db'), { readwrite: true, safeIntegers: true })
const { changes } = database
  .query(`UPDATE api_keys SET verifier = ?, pepper_version = ?, last4 = ? WHERE name = 'first-key'`)
  .run(computeVerifier(key), computeVerifier.version, lastFour(key))
if (changes !== 1) throw new Error('the first start created no key')
folder.write('first-key', `${key}\n`)
