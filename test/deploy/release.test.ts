import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync, verify } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { sourceCommand } from '../parts/program.ts'
import { root } from './site.ts'

// A release of the last commit, made twice: in folders of other names and depths, under another umask, at another time.
// Without the programs: those take long, and security.md P3 says how they are compared.

const folder = mkdtempSync(join(tmpdir(), 'tollgate-release-'))
const key = join(folder, 'key')
const publicKey = `${key}.pub.pem`
const first = join(folder, 'first')
const second = join(folder, 'deeper/second')

async function run(cwd: string, ...command: readonly string[]) {
  const child = Bun.spawn([...command], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { exit, out, err }
}

async function succeed(cwd: string, ...command: readonly string[]): Promise<string> {
  const { exit, out, err } = await run(cwd, ...command)
  if (exit !== 0) throw new Error(`${command.join(' ')} ended with ${exit}:\n${out}${err}`)
  return out
}

const release = [process.execPath, 'run', 'deploy/release.ts']
const verifyFiles = (files: string, keyFile = publicKey) =>
  run(folder, ...sourceCommand, 'version', '--verify', files, '--key', keyFile)

async function build(checkout: string, target: string, umask: string): Promise<void> {
  mkdirSync(checkout, { recursive: true })
  await succeed(folder, 'sh', '-c', `umask ${umask} && git clone --quiet "file://${root}" "${checkout}"`)
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  await succeed(checkout, 'sh', '-c', `umask ${umask} && ${release.join(' ')} ${target} --platforms "" --sign ${key}`)
}

beforeAll(async () => {
  await succeed(root, ...release, '--new-key', key)
  await build(join(folder, 'a'), first, '022')
  await build(join(folder, 'another/checkout'), second, '077')
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A copy of the release, changed. */
function changed(name: string, change: (text: Buffer) => Buffer | string): string {
  const copy = mkdtempSync(join(folder, 'changed-'))
  cpSync(first, copy, { recursive: true })
  writeFileSync(join(copy, name), change(readFileSync(join(copy, name))))
  return copy
}

const archive = `tollgate-${manifest.version}.tgz`

test('P3: the same commit gives the same bytes in another folder, under another umask and later', async () => {
  const names = readdirSync(first).sort()
  expect(readdirSync(second).sort()).toEqual(names)
  expect(names).toContain(archive)
  expect(names).toContain(`tollgate-chart-${manifest.version}.tgz`)
  for (const name of names) {
    const bytes = readFileSync(join(first, name))
    expect({ name, same: bytes.equals(readFileSync(join(second, name))) }).toEqual({ name, same: true })
  }
})

test('the package is that of the commit, for npm, tar and sha256sum', async () => {
  expect(await succeed(first, 'sha256sum', '--check', '--strict', '--quiet', 'SHA256SUMS')).toBe('')
  const listed = await succeed(first, 'tar', '--list', '--verbose', '--gzip', `--file=${archive}`)
  expect(listed).toMatch(/^-rwxr-xr-x .* package\/bin\/tollgate$/m)
  const list = JSON.parse(readFileSync(join(first, `tollgate-${manifest.version}.cdx.json`), 'utf8'))
  expect(list.metadata.component).toMatchObject({ name: 'tollgate', version: manifest.version })
})

test('the signature and the provenance are those of other tools', async () => {
  const sums = join(first, 'SHA256SUMS')
  const openssl = ['openssl', 'pkeyutl', '-verify', '-pubin', '-inkey', publicKey, '-rawin']
  expect(await succeed(folder, ...openssl, '-in', sums, '-sigfile', `${sums}.sig`)).toContain('Verified Successfully')
  // By the words of the DSSE protocol.
  const { payloadType, payload, signatures } = JSON.parse(readFileSync(join(first, 'tollgate.intoto.jsonl'), 'utf8'))
  const statement = Buffer.from(payload, 'base64').toString()
  const signed = `DSSEv1 28 application/vnd.in-toto+json ${statement.length} ${statement}`
  expect(payloadType).toBe('application/vnd.in-toto+json')
  expect(verify(null, Buffer.from(signed), readFileSync(publicKey), Buffer.from(signatures[0].sig, 'base64'))).toBe(
    true,
  )
  const commit = (await succeed(join(folder, 'a'), 'git', 'rev-parse', 'HEAD')).trim()
  expect(JSON.parse(statement)).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: { buildDefinition: { externalParameters: { version: manifest.version, commit } } },
  })
})

test('`tollgate version --verify` accepts the release, all of it or a part', async () => {
  expect(await verifyFiles(first)).toMatchObject({ exit: 0, out: expect.stringContaining(`${archive} `) })
  const part = changed('SHA256SUMS', (bytes) => bytes)
  rmSync(join(part, archive))
  expect((await verifyFiles(part)).out).toMatch(new RegExp(`${archive} +not in this folder`))
})

test('`tollgate version --verify` refuses a changed byte anywhere, and another key', async () => {
  const flip = (at: number) => (bytes: Buffer) => {
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
    return bytes
  }
  for (const name of readdirSync(first)) {
    const { exit, err } = await verifyFiles(changed(name, flip(20)))
    expect({ name, exit }).toEqual({ name, exit: 1 })
    expect(err).toContain('Use none of these files')
  }
  const other = join(folder, 'other.pem')
  writeFileSync(other, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }))
  expect((await verifyFiles(first, other)).err).toContain('SHA256SUMS was not signed with this key')
  expect((await verifyFiles(first, join(root, 'package.json'))).err).toContain('is not an Ed25519 public key')
  expect((await verifyFiles(folder)).err).toContain(`there is no file ${join(folder, 'SHA256SUMS')}`)
})

test('a release is made of a commit, into a folder of its own, and a key is never replaced', async () => {
  const checkout = join(folder, 'a')
  writeFileSync(join(checkout, 'README.md'), 'changed')
  expect((await run(checkout, ...release, join(folder, 'third'))).err).toContain('changes that are not committed')
  await succeed(checkout, 'git', 'checkout', '--quiet', 'README.md')
  expect((await run(checkout, ...release, folder)).err).toContain('has other files than those of a release')
  expect((await run(checkout, ...release, first, '--platforms', 'vms')).err).toContain('there is no program for vms')
  expect((await run(checkout, ...release, '--new-key', key)).err).toContain('exists')
})
