// The packages that run with the gateway, each with version and licence, as CycloneDX. The same bytes each time.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }

const root = join(import.meta.dir, '..')

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devDependencies?: unknown }>>
}

export interface BillOfMaterials {
  readonly components: readonly { readonly name: string; readonly version: string; readonly licenses?: unknown[] }[]
  readonly metadata: { readonly timestamp: string; readonly component: { readonly name: string } }
}

/** npm's own `sbom --omit=dev` also omits packages that tools share, so that it gets a project without tools. */
function copyWithoutTools(folder: string): void {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  const kept = Object.entries(lock.packages).filter(([, { dev }]) => dev !== true)
  const packages = Object.fromEntries(kept.map(([path, each]) => [path, { ...each, devDependencies: undefined }]))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, devDependencies: undefined }))
}

/** npm gives each list a random number, the present time and the name of its folder. */
export async function billOfMaterials(timestamp: string): Promise<BillOfMaterials> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bill-'))
  try {
    copyWithoutTools(folder)
    const command = [
      'npm',
      'sbom',
      '--sbom-format=cyclonedx',
      '--sbom-type=application',
      '--package-lock-only',
      '--offline',
    ]
    const child = Bun.spawn(command, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
    if (exit !== 0) throw new Error(`npm sbom failed:\n${err}`)
    const { serialNumber: _, ...bill } = JSON.parse(out)
    const component = { ...bill.metadata.component, name: manifest.name }
    return { ...bill, metadata: { ...bill.metadata, timestamp, component } }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
