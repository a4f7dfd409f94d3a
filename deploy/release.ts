// `npm run release [-- FOLDER] [--sign KEY]`: everything a release consists of, in one folder (deploy/build/release): the
// npm package, the single-file program of each platform, the source, the Helm chart, the SBOM (CycloneDX) with the licences, SHA256SUMS
// and a signed statement of what it was built from. The same commit gives the same bytes, on any day and in any folder. It
// publishes nothing. Linters that are installed check the deployment files; those that are not are named.
// `npm run release -- --new-key FILE` makes the key that signs releases, and its public half beside it.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import manifest from '../package.json' with { type: 'json' }
import {
  hashOf,
  keyId,
  provenanceName,
  renderSums,
  type Sums,
  signatureName,
  signEnvelope,
  sumsName,
} from '../src/cli/release.ts'
import { billOfMaterials, licenceTexts } from './bill-of-materials.ts'
import { compile } from './compile.ts'
import { lint } from './lint.ts'

const root = join(import.meta.dir, '..')
const { version } = manifest
const own = `${process.platform}-${process.arch}`
/** Bun fetches the runtime of another platform when it compiles for it. */
const platforms = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'] as const

const say = (line: string): void => void process.stdout.write(`${line}\n`)

function fail(message: string): never {
  process.stderr.write(`npm run release: ${message}\n`)
  process.exit(1)
}

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed:\n${out}${err}`)
  return out
}

/** The commit that is built. Its time stands for the time of the release, so that a later build has it too. */
interface Source {
  readonly commit: string
  readonly seconds: number
}

async function readSource(): Promise<Source> {
  const [commit = '', seconds] = (await run(['git', 'log', '-1', '--format=%H %ct'])).trim().split(' ')
  if ((await run(['git', 'status', '--porcelain', '--untracked-files=no'])) !== '')
    fail('there are changes that are not committed, and a release is made of a commit. Commit or stash them.')
  return { commit, seconds: Number(seconds) }
}

/** The chart as `helm package` makes it, but with the same bytes each time. */
async function packChart(folder: string, { seconds }: Source): Promise<void> {
  const like = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX', `--mtime=@${seconds}`]
  const archive = join(folder, `tollgate-chart-${version}.tar`)
  await run(['tar', '--create', ...like, `--file=${archive}`, '--directory=deploy/helm', 'tollgate'])
  await compress(archive, join(folder, `tollgate-chart-${version}.tgz`))
}

/** The source, which the image is built from, and the npm package of it: with the commit's modes of files, not the checkout's. */
async function packSource(folder: string): Promise<void> {
  const name = `tollgate-${version}`
  const archive = join(folder, `${name}-source.tar`)
  await run(['git', '-c', 'tar.umask=0022', 'archive', `--prefix=${name}/`, `--output=${archive}`, 'HEAD'])
  await run(['tar', '--extract', '--same-permissions', `--file=${archive}`, `--directory=${folder}`])
  // `private` keeps a checkout from being published by mistake.
  const { private: _, ...published } = manifest
  await Bun.write(join(folder, name, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
  await run(['npm', 'pack', join(folder, name), '--pack-destination', folder])
  rmSync(join(folder, name), { recursive: true })
  await compress(archive, `${archive}.gz`)
}

async function compress(archive: string, target: string): Promise<void> {
  await Bun.write(target, Bun.gzipSync(await Bun.file(archive).bytes(), { level: 9 }))
  rmSync(archive)
}

async function compilePrograms(folder: string, wanted: readonly string[]): Promise<void> {
  for (const platform of platforms.filter((each) => wanted.includes(each))) {
    const file = join(folder, `tollgate-${version}-${platform}`)
    try {
      await compile(file, platform === own ? undefined : `bun-${platform}`)
      say(`made: ${file}`)
    } catch (thrown) {
      if (platform === own) throw thrown
      say(`not made: ${platform} (${String(thrown).split('\n')[0]})`)
    }
  }
}

/** SLSA provenance, version 1: which files, and what they were made from by whom. */
function provenance(sums: Sums, { commit }: Source, lockHash: string) {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...sums].map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:tollgate:npm-run-release',
        externalParameters: { version, commit },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: { sha256: lockHash } },
        ],
      },
      runDetails: { builder: { id: 'urn:tollgate:maintainer' } },
    },
  }
}

async function sumsOf(folder: string): Promise<Sums> {
  const names = readdirSync(folder).sort()
  return new Map(await Promise.all(names.map(async (name) => [name, await hashOf(join(folder, name))] as const)))
}

function makeKey(file: string): void {
  if (existsSync(file)) fail(`${file} exists. A new key makes releases that were signed with the old one unverifiable.`)
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  writeFileSync(`${file}.pub.pem`, publicKey.export({ type: 'spki', format: 'pem' }))
  say(`${file}: keep it secret.\n${file}.pub.pem: commit it as release-key.pem. Its id is ${keyId(publicKey)}.`)
}

function readKey(file: string): KeyObject {
  if (!existsSync(file)) fail(`there is no key ${file}. Make one: npm run release -- --new-key ${file}`)
  const key = createPrivateKey(readFileSync(file))
  return key.asymmetricKeyType === 'ed25519' ? key : fail(`${file} is not an Ed25519 key.`)
}

async function release(folder: string, wanted: readonly string[], key: KeyObject | undefined): Promise<void> {
  const source = await readSource()
  if (existsSync(folder) && readdirSync(folder).length > 0 && !existsSync(join(folder, sumsName)))
    fail(`${folder} has other files than those of a release. Name an empty folder.`)
  const unknown = wanted.find((each) => !platforms.some((platform) => platform === each))
  if (unknown !== undefined) fail(`there is no program for ${unknown}. Name some of ${platforms.join(', ')}.`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await lint(say)
  await packChart(folder, source)
  await packSource(folder)
  const bill = await billOfMaterials(new Date(source.seconds * 1000).toISOString())
  await Bun.write(join(folder, `tollgate-${version}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`)
  await Bun.write(join(folder, `tollgate-${version}-licences.txt`), licenceTexts(bill))
  await compilePrograms(folder, wanted)
  const sums = await sumsOf(folder)
  const text = renderSums(sums)
  await Bun.write(join(folder, sumsName), text)
  say(text)
  if (key === undefined) return say('Not signed: pass --sign KEY to sign it and to state what it was built from.')
  const statement = provenance(sums, source, await hashOf(join(root, 'package-lock.json')))
  await Bun.write(join(folder, provenanceName), signEnvelope(statement, key))
  await Bun.write(join(folder, signatureName), sign(null, Buffer.from(text), key))
  say(`Signed by the key ${keyId(createPublicKey(key))}.`)
}

const { values, positionals } = parseArgs({
  options: { sign: { type: 'string' }, platforms: { type: 'string' }, 'new-key': { type: 'string' } },
  allowPositionals: true,
})
if (values['new-key'] !== undefined) makeKey(resolve(values['new-key']))
else {
  const folder = resolve(positionals[0] ?? join(import.meta.dir, 'build/release'))
  const wanted = values.platforms?.split(',').filter((each) => each !== '') ?? platforms
  await release(folder, wanted, values.sign === undefined ? undefined : readKey(values.sign))
}
