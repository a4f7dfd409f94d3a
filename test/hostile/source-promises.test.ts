// Promises of docs/security.md that are kept by what the source does not do. Each is checked in the text itself, so
// that breaking one fails a test.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { billOfMaterials, licenceTexts } from '../../deploy/bill-of-materials.ts'

const root = join(import.meta.dir, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

async function sources(pattern: string): Promise<readonly { readonly path: string; readonly code: string }[]> {
  const paths = await Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: root }))
  const own = paths.filter((path) => !path.includes('.test.'))
  expect(own.length).toBeGreaterThan(0)
  return own.map((path) => ({ path, code: read(path).replaceAll(/^\s*(\/\/|\*|\/\*|--).*$/gm, '') }))
}

const found = (files: Awaited<ReturnType<typeof sources>>, form: RegExp) =>
  files.flatMap(({ path, code }) => [...code.matchAll(form)].map(([text]) => `${path}: ${text.trim()}`))

/** Everything that is compared with a secret, or with what is made from one. */
const comparing = ['src/http/payments/stripe-event.ts', 'src/tenancy/caller.ts', 'src/tenancy/secrets.ts']

test('A3: what is made from a secret is compared in constant time, and nowhere with ===', async () => {
  for (const path of comparing) expect([path, read(path).includes('timingSafeEqual(')]).toEqual([path, true])
  const serving = await sources('src/{tenancy,http,web,app}/**/*.ts')
  const compared =
    /[^\n]*\b(?:verifier|digest|signature|adminToken|secret|bearer)(?:\.\w+\(\))? [!=]== (?!undefined|null)[^\n]*/g
  expect(found(serving, compared)).toEqual([])
})

test('A3: a key is looked up by its HMAC, and the secret itself is in no statement', async () => {
  const statements = found(await sources('src/**/*.ts'), /sql`[^`]*\$\{(?:key\.key|apiKey|secret|bearer)\}[^`]*`/g)
  expect(statements).toEqual([])
})

test('R5: no statement matches by a pattern, so that none can be made slow by one', async () => {
  const patterns = /\b(?:I?LIKE|SIMILAR TO|GLOB|REGEXP)\b[^\n]*|~\*? '[^\n]*/g
  expect(found(await sources('src/{store,ledger,tenancy,telemetry,catalog,limits}/**/*.{ts,sql}'), patterns)).toEqual(
    [],
  )
})

describe('W5:', () => {
  test('pages link to paths of the gateway alone, or without giving the other page a hold on ours', async () => {
    const pages = await sources('src/web/**/*.tsx')
    const links = pages.flatMap(({ path, code }) =>
      [...code.matchAll(/<(?:a|form|area)\b[^>]*?(?:href|action)=(?:"([^"]*)"|\{`([^`]*)`\})[^>]*>/gs)].map(
        (match) => ({
          path,
          to: match[1] ?? match[2] ?? '',
          tag: match[0],
        }),
      ),
    )
    expect(links.length).toBeGreaterThan(10)
    const foreign = links.filter(({ to, tag }) => !/^[/#?]/.test(to) && !/\brel="[^"]*noopener/.test(tag))
    expect(foreign).toEqual([])
  })

  test('no page opens another, and no link is made from an address that somebody else wrote', async () => {
    const pages = await sources('src/web/**/*.{ts,tsx}')
    expect(
      found(pages, /target="_blank"|window\.open\([^\n]*|href=\{[^}]*(?:\burl\b|baseUrl|base_url|source)[^}]*\}/gi),
    ).toEqual([])
  })
})

test('W6: one file hashes passwords, with Argon2id, and one column holds the hashes', async () => {
  const hashing = found(await sources('src/**/*.ts'), /Bun\.password|\b(?:bcrypt|scrypt|pbkdf2)\w*/gi)
  expect([...new Set(hashing)]).toEqual(['src/tenancy/people.ts: Bun.password'])
  const columns = found(await sources('src/store/migrations/*.sql'), /[^\n]*password[^\n]*/gi)
  expect(columns).toEqual(['src/store/migrations/0001-schema.sql: password_hash TEXT,'])
})

test('P2: what CI runs publishes nothing and asks for no secret', () => {
  const script = read('.ci/run')
  expect(script).toContain('npm test')
  expect(script).not.toMatch(/publish|push|login|TOKEN|SECRET|PASSWORD|\bgpg\b|curl .*(-d|--data|-T)/i)
  expect(JSON.parse(read('package.json'))).toMatchObject({ private: true })
})

test('P2: workflows pin what they use by hash, and hold no token of a registry', () => {
  const files = readdirSync(join(root, '.github/workflows'))
  expect(files).toContain('release.yml')
  for (const file of files) {
    const text = read(`.github/workflows/${file}`)
    const used = [...text.matchAll(/uses: (.*)/g)].map(([, action]) => action)
    expect(used.length).toBeGreaterThan(0)
    for (const action of used) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v[\d.]+$/)
    expect(text).toMatch(/^permissions: \{/m)
    expect(text).not.toContain('secrets.')
  }
})

test('P4: the bill of materials names what runs, each with its version and its licence', async () => {
  const { components } = await billOfMaterials('2026-11-15T00:00:00.000Z')
  const named = components.map(({ name, version }) => `${name} ${version}`)
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
  for (const [name, version] of Object.entries(dependencies)) expect(named).toContain(`${name} ${version}`)
  const unlicensed = components.filter(({ licenses }) => (licenses?.length ?? 0) === 0)
  expect(unlicensed.map(({ name }) => name)).toEqual([])
})

test('P4: the licences of what runs are passed on with it, as texts', async () => {
  const bill = await billOfMaterials('2026-11-15T00:00:00.000Z')
  const texts = licenceTexts(bill)
  for (const { name, version } of bill.components)
    if (!name.startsWith('@oven/')) expect(texts).toContain(`\n${name} ${version}\n`)
  expect(texts.startsWith('tollgate ')).toBe(true)
  for (const words of ['Apache License', 'Permission is hereby granted', 'SIL OPEN FONT LICENSE'])
    expect(texts).toContain(words)
})
