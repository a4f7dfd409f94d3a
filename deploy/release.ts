// `npm run release [-- FOLDER]`: everything a release consists of, in one folder (deploy/build/release): the npm package, the
// single-file program of each platform, the Helm chart, the SBOM (CycloneDX) and SHA256SUMS. It publishes nothing. Linters
// that are installed check the deployment files; those that are not are named.

import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { compile } from './compile.ts'

const root = join(import.meta.dir, '..')
const folder = resolve(process.argv[2] ?? join(import.meta.dir, 'build/release'))
const own = `bun-${process.platform}-${process.arch}`
/** Bun fetches the runtime of another platform when it compiles for it. */
const platforms = ['bun-linux-x64', 'bun-linux-arm64', 'bun-darwin-x64', 'bun-darwin-arm64'] as const

const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed:\n${out}${err}`)
  return out
}

/** Each linter with what it checks. A finding ends the release. */
const chart = 'deploy/helm/tollgate'
const linters: readonly (readonly string[])[] = [
  ['hadolint', 'deploy/Dockerfile'],
  ['helm', 'lint', '--strict', chart],
  ['kubeconform', '-strict', '-summary', '-ignore-filename-pattern', 'kustomization', 'deploy/kubernetes'],
]

async function lint(): Promise<void> {
  for (const command of linters) {
    const name = command[0] ?? ''
    if (Bun.which(name) === null) say(`not checked: ${command.join(' ')} (${name} is not installed)`)
    else {
      await run(command)
      say(`checked: ${command.join(' ')}`)
    }
  }
  if (Bun.which('helm') === null) return
  await Bun.write(join(folder, 'rendered.yaml'), await run(['helm', 'template', 'tollgate', chart]))
  if (Bun.which('kubeconform') !== null) await run(['kubeconform', '-strict', join(folder, 'rendered.yaml')])
  rmSync(join(folder, 'rendered.yaml'))
  await run(['helm', 'package', chart, '--destination', folder])
}

async function programs(): Promise<void> {
  for (const platform of platforms) {
    const file = join(folder, `tollgate-${manifest.version}-${platform.slice('bun-'.length)}`)
    try {
      await compile(file, platform === own ? undefined : platform)
      say(`made: ${file}`)
    } catch (thrown) {
      if (platform === own) throw thrown
      say(`not made: ${platform} (${String(thrown).split('\n')[0]})`)
    }
  }
}

async function checksums(): Promise<void> {
  const lines: string[] = []
  for (const name of readdirSync(folder).sort()) {
    if (name === 'SHA256SUMS') continue
    const hash = new Bun.CryptoHasher('sha256')
    for await (const bytes of Bun.file(join(folder, name)).stream()) hash.update(bytes)
    lines.push(`${hash.digest('hex')}  ${name}\n`)
  }
  await Bun.write(join(folder, 'SHA256SUMS'), lines.join(''))
}

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
await lint()
await run(['npm', 'pack', '--pack-destination', folder])
const sbom = await run([
  'npm',
  'sbom',
  '--package-lock-only',
  '--sbom-format',
  'cyclonedx',
  '--omit',
  'dev',
  '--sbom-type',
  'application',
])
await Bun.write(join(folder, `tollgate-${manifest.version}.cdx.json`), sbom)
await programs()
await checksums()
say(await Bun.file(join(folder, 'SHA256SUMS')).text())
