// The key file of a Google service account, as Google gives it out, with a generated key.

import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function serviceAccount(name: string, tokenUrl = 'https://oauth2.googleapis.com/token') {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    type: 'service_account',
    project_id: `${name}-project`,
    private_key_id: `${'0'.repeat(36)}ab12`,
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    client_email: `robot@${name}-project.iam.gserviceaccount.com`,
    client_id: '100000000000000000001',
    token_uri: tokenUrl,
  }
}

/** As an operator has it, with tokens at another place than Google's. */
export function writeServiceAccount(name: string, tokenUrl: string): { readonly path: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-account-'))
  const path = join(folder, 'key.json')
  writeFileSync(path, JSON.stringify(serviceAccount(name, tokenUrl), undefined, 2))
  return { path, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
}
