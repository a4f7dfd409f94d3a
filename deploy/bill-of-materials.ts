// The packages that run with the gateway, each with version and licence: as CycloneDX, and the texts of their licences.
// The same bytes each time.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

/** Bun's package has no text; its repository's also lists what is linked into it. */
const isBun = (name: string): boolean => name === 'bun' || name.startsWith('@oven/bun-')

/** What whoever passes on the single-file program has to pass on with it. */
export function licenceTexts({ components }: BillOfMaterials): string {
  const texts = components.flatMap(({ name, version }) => {
    if (isBun(name)) return []
    const folder = join(root, 'node_modules', name)
    const file = readdirSync(folder).find((each) => /^licen[cs]e(\.|$)/i.test(each))
    if (file === undefined) throw new Error(`${name} ${version} has no text of its licence in its package`)
    return [`${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`]
  })
  const bun = components.find(({ name }) => name === 'bun')
  const bunText = `bun ${bun?.version}\n\nMIT. See LICENSE.md in the repository oven-sh/bun, also for what is linked into it.\n`
  const own = `${manifest.name} ${manifest.version}\n\n${readFileSync(join(root, 'LICENSE'), 'utf8').trim()}\n`
  return [own, bunText, ...texts].join(`\n${'-'.repeat(80)}\n`)
}
