// The page of promises: every id of the checklist stands on it once, and every test it names is there.

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const page = read('docs/security.md')

/** How many rows each part of the checklist has. */
const parts = { A: 11, T: 9, N: 19, D: 14, S: 10, U: 7, K: 6, L: 8, R: 8, W: 7, B: 5, G: 3, H: 8, P: 5 }

interface Row {
  readonly id: string
  readonly proof: string
}

const rows: readonly Row[] = [...page.matchAll(/^\| ([A-Z]\d+) \| [^|]+ \| ([^|]+) \|$/gm)].map(
  ([, id = '', proof = '']) => ({ id, proof }),
)

test('every id of the checklist has one row, in order', () => {
  const ids = Object.entries(parts).flatMap(([part, count]) =>
    Array.from({ length: count }, (_, at) => part + (at + 1)),
  )
  expect(rows.map(({ id }) => id)).toEqual(ids)
})

describe('a row names a test that is there, or says why there is none:', () => {
  test.each([...rows])('$id', ({ proof }) => {
    const [, path, name] = /^`([^`]+)` › (.+)$/.exec(proof) ?? []
    if (path === undefined || name === undefined) return expect(proof).toMatch(/^none\b.{0,20}: ./)
    expect({ path, isThere: existsSync(join(root, path)) }).toEqual({ path, isThere: true })
    expect(read(path)).toContain(name)
  })
})

/** The purpose of each. */
const dialling: Readonly<Record<string, string>> = {
  'src/alerts/mail.ts': 'the mail server',
  'src/catalog/price-source.ts': 'a price list that the operator named',
  'src/http/payments/stripe-api.ts': 'payments',
  'src/providers/access-tokens.ts': 'tokens for providers, and the identity of this process',
  'src/providers/batch-api/batch-api.ts': 'batches of providers that the operator named',
  'src/providers/call-endpoint.ts': 'providers behind an HTTP proxy',
  'src/providers/connection-pool.ts': 'providers',
  'src/providers/egress/egress-guard.ts': 'providers that a workspace named, and the address of their host',

  'src/providers/local.ts': 'local model servers',
  'src/reconcile/fetch-pages.ts': 'bills of providers that the operator named',
  'src/store/postgres.ts': 'the database',
  'src/store/redis.ts': 'limits, and what else replicas share',
  'src/telemetry/otlp.ts': 'traces and metrics',
  'src/web/oidc.ts': 'the identity provider',
}

/** Every way there is to the network: what Bun has at hand, and what must be imported. */
const waysOut = [
  /(?<![.\w])(fetch|Bun\.connect|Bun\.udpSocket|new WebSocket)(<\w+>)?\(/,
  /(from|import|require)\s*\(?\s*['"](node:)?(net|tls|http|https|http2|dgram|dns)(\/promises)?['"]/,
  /\bnew (Bun\.)?SQL\(/,
  /\bRedisClient\b/,
  /from '(openid-client|nodemailer)'/,
]

test('S8: connections are opened in these places and no others', async () => {
  const paths = await Array.fromAsync(new Bun.Glob('src/**/*.{ts,tsx}').scan({ cwd: root }))
  // Pages run in a browser, and the command line calls its own gateway.
  const serving = paths.filter((path) => !/\.test\.|^src\/(web\/pages|cli)\//.test(path))
  const found = serving.filter((path) => {
    const code = codeOf(read(path))
    return waysOut.some((way) => way.test(code))
  })
  expect(found.sort()).toEqual(Object.keys(dialling))
})

function codeOf(source: string): string {
  return source.replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '')
}

interface LockedPackage {
  readonly dev?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
}

test('P1, H6: few packages run, only bun has an install script, and its version is exact', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockedPackage> }
  const running = Object.entries(packages).filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
  expect(running.length).toBeLessThanOrEqual(16)
  const scripted = running.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)
  expect(scripted).toEqual(['node_modules/bun'])
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
  for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/)
})
