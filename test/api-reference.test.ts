// docs/reference/api.md matches the code: paths, request fields, headers, errors, and the answers that it shows.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { ownFields as messagesFields } from '../src/dialects/anthropic-messages/request/parse.ts'
import { supported as geminiFields, supportedConfig } from '../src/dialects/gemini/request/parse.ts'
import { supported as embeddingsFields } from '../src/dialects/openai-chat/embeddings.ts'
import { supported as chatFields } from '../src/dialects/openai-chat/request/parse.ts'
import { supportedWithStore as responsesFields } from '../src/dialects/openai-responses/request/parse.ts'
import { surfaces } from '../src/dialects/registry.ts'
import { type FailureCode, failureTable } from '../src/kernel/failure.ts'
import { type Gateway, startGateway } from './parts/gateway.ts'

const page = await Bun.file(join(import.meta.dir, '../docs/reference/api.md')).text()

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

/** Between `<!-- name -->` and `<!-- /name -->`. */
function partOf(name: string): string {
  return page.split(`<!-- ${name} -->\n`)[1]?.split(`<!-- /${name} -->`)[0] ?? ''
}

/** Names in the first column of a table. */
function namesIn(table: string): string[] {
  const cells = table
    .split('\n')
    .slice(2)
    .map((line) => line.split('|')[1] ?? '')
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
}

test.each<[name: string, fields: readonly string[]]>([
  ['chat', chatFields],
  ['messages', messagesFields],
  ['responses', responsesFields],
  ['embeddings', embeddingsFields],
  ['gemini', geminiFields],
  ['generationConfig', supportedConfig],
])('lists the fields that are carried to every provider: %s', (name, fields) => {
  expect(namesIn(partOf(`fields: ${name}`)).sort()).toEqual([...fields].sort())
})

test('has every path that takes requests', () => {
  const paths = Object.values(surfaces).flatMap((surface) => Object.values('paths' in surface ? surface.paths : {}))
  expect(paths.filter((path) => !page.includes(`POST /v1${path}`))).toEqual([])
})

test('has every header of the gateway', async () => {
  const found = new Set<string>()
  for await (const path of new Bun.Glob('src/{pipeline,http,tenancy,dialects}/**/*.ts').scan(
    join(import.meta.dir, '..'),
  )) {
    if (path.endsWith('.test.ts') || path.includes('management')) continue
    const text = await Bun.file(join(import.meta.dir, '..', path)).text()
    for (const [, name = ''] of text.matchAll(/'(x-tollgate-[a-z-]+)'/g)) found.add(name)
  }
  expect(found.size).toBeGreaterThan(8)
  expect([...found].filter((name) => !page.includes(`\`${name}`))).toEqual([])
})

test('has every error with its words on each API', () => {
  const rows = (Object.keys(failureTable) as FailureCode[]).map((code) => {
    const { status, chatType, messagesType, geminiStatus } = failureTable[code]
    const words = [chatType, messagesType, geminiStatus].map((word) => `\`${word}\``).join(' | ')
    return `| [\`${code}\`](../errors.md#${code.toLowerCase()}) | ${status ?? 'in a stream'} | ${words} |`
  })
  const head = [
    '| code | status | `type` on OpenAI’s APIs | `type` on Messages | `status` on Gemini’s API |',
    '|---|---|---|---|---|',
  ]
  expect(partOf('errors')).toBe(`${[...head, ...rows].join('\n')}\n`)
})

/** Paths of the members of a value, with `[]` for the entries of a list. */
function shapeOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.slice(0, 1).flatMap((entry) => shapeOf(entry, `${at}[]`))
  if (typeof value !== 'object' || value === null) return [at]
  return Object.entries(value).flatMap(([name, member]) => shapeOf(member, `${at}.${name}`))
}

const calls = [...page.matchAll(/```sh\n(.*?)```\n```json\n(.*?)```/gs)].map(([, command = '', answer = '']) => {
  return { name: /8080(\S+)/.exec(command)?.[1] ?? '', command, answer }
})

describe('the calls that it shows', () => {
  test('are all of its commands', () => {
    expect(calls).toHaveLength(page.split('```sh\n').length - 1)
    expect(calls).toHaveLength(6)
  })

  test.each(calls)('$name answers what is shown', async ({ command, answer }) => {
    const script = command.replace('http://127.0.0.1:8080', gateway.url).replace('curl ', 'curl -s ')
    const env = { ...process.env, TOLLGATE_KEY: gateway.key }
    const got = JSON.parse(await new Response(Bun.spawn(['bash', '-c', script], { env }).stdout).text())
    const shown = JSON.parse(answer)
    const has = shapeOf(got)
    expect(shapeOf(shown).filter((path) => !has.some((each) => each === path || each.startsWith(`${path}.`)))).toEqual(
      [],
    )
    const usage = (reply: typeof got) => reply.usage ?? reply.usageMetadata ?? reply.pricing
    expect(usage(got)).toMatchObject(usage(shown))
  })
})
