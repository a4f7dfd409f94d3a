// Every fault of the golden table, met by a provider of each dialect, seen from each surface, streamed and not, while
// another route is healthy and when none is.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { chat, gemini, inWordsOf, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { type Cell, cellName, cells, type FaultGateway, type Setting, startFaultGateway } from './fault-gateway.ts'
import { type GoldenRow, golden, type Outcome } from './golden.ts'
import { addressFaults } from './misbehave.ts'

const surfaces: Readonly<Record<Cell['surface'], TestSurface>> = { chat, messages, responses, gemini }

interface Seen {
  readonly status: number
  readonly headers: Headers
  /** Without what only keeps a connection alive. */
  readonly text: string
}

async function send({ gateway, noteSeen }: FaultGateway, cell: Cell, setting: Setting): Promise<Seen> {
  const surface = surfaces[cell.surface]
  const model = `test/${cellName(cell, setting)}`
  const said = [{ role: 'user', content: 'hi' }]
  // Responses takes no smaller cap.
  const content = { messages: said, max_tokens: cell.surface === 'responses' ? 16 : 5 }
  const body = { model, stream: cell.stream, ...inWordsOf(surface, content) }
  const response = await ask(gateway, surface, body)
  const text = await readText(response, cell.stream ? noteSeen : () => {})
  const events = text.replaceAll(': keep-alive\n\n', '').replaceAll(/event: ping\n.*\n\n/g, '')
  return { status: response.status, headers: response.headers, text: events }
}

async function readText(response: Response, onContent: () => void): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of response.body ?? []) {
    const had = text.includes('hello')
    text += decoder.decode(bytes, { stream: true })
    if (!had && text.includes('hello')) onContent()
  }
  return text
}

function outcomeFor(row: GoldenRow, { upstream, surface, stream }: Cell): Outcome {
  if (stream) return row
  return (upstream === surface ? row.wholeBytes : undefined) ?? row.whole ?? row
}

/** The provider's secret, and its message about the account, must not reach callers. */
const secrets = /upstream-secret|API key|billing|quota|account/i

const statuses: Readonly<Record<string, number>> = {
  INVALID_REQUEST: 400,
  NOT_FOUND: 404,
  PAYLOAD_TOO_LARGE: 413,
  LIMIT_EXCEEDED: 429,
  UNAVAILABLE: 503,
}

function expectOutcome(seen: Seen, expected: string, cell: Cell, { isTransient }: Outcome): void {
  expect(seen.headers.get('x-request-id')).toMatch(/^req_/)
  expect(seen.text).not.toMatch(secrets)
  if (expected.startsWith('hidden')) return expectWholeAnswer(seen, cell)
  const [, form, word = '', words = ''] = /^(event |)(\S+) ?(.*)$/.exec(expected) ?? []
  const isSpecified = cell.surface === 'chat' || cell.surface === 'messages'
  const code = word !== 'OUTAGE' ? word : isSpecified ? 'NOT_FOUND' : 'UNAVAILABLE'
  if (code === 'interrupted') {
    expect(seen.text).toContain('hello')
    return expectEvent(seen, cell, 'STREAM_INTERRUPTED', words)
  }
  if (form === 'event ') return expectEvent(seen, cell, code, words)
  expect(`${seen.status} ${seen.text}`).toStartWith(`${statuses[code]} {`)
  const { error } = JSON.parse(seen.text) as { error: { code: unknown; message: string; details: object[] } }
  if (cell.surface === 'gemini')
    expect([error.code, error.details[0]]).toMatchObject([statuses[code], { reason: code }])
  else expect(error.code).toBe(code)
  if (code !== 'LIMIT_EXCEEDED') expect(error.message).toContain(words)
  const throttledSeconds = code === 'LIMIT_EXCEEDED' ? Number(words) : 0
  expectRetryHeaders(seen.headers, code, isTransient ? 4 : throttledSeconds)
}

function expectRetryHeaders(headers: Headers, code: string, seconds: number): void {
  const waits = code === 'LIMIT_EXCEEDED' || code === 'UNAVAILABLE' || (code === 'NOT_FOUND' && seconds > 0)
  expect(headers.get('retry-after')).toBe(waits ? String(seconds) : null)
  expect(headers.get('retry-after-ms')).toBe(waits ? String(seconds * 1000) : null)
  // Official clients retry a 429 by themselves, and a 404 only with x-should-retry. They do not keep waits over a minute.
  const isLong = seconds > 60
  const passing = String(waits && !isLong)
  const shouldRetry =
    { LIMIT_EXCEEDED: isLong ? 'false' : null, NOT_FOUND: passing, UNAVAILABLE: passing }[code] ?? null
  expect(headers.get('x-should-retry')).toBe(shouldRetry)
}

const wholes: Readonly<Record<Cell['surface'], object>> = {
  chat: { object: 'chat.completion' },
  messages: {},
  responses: { object: 'response', status: 'completed' },
  gemini: { candidates: [{ finishReason: 'STOP' }] },
}
const endings: Readonly<Record<Cell['surface'], string>> = {
  chat: 'data: [DONE]',
  messages: '"message_stop"',
  responses: 'event: response.completed',
  gemini: '"finishReason":"STOP"',
}

function expectWholeAnswer({ status, text }: Seen, { surface, stream }: Cell): void {
  expect(status).toBe(200)
  expect(text).toContain('hello')
  if (!stream) return expect(JSON.parse(text)).toMatchObject(wholes[surface])
  expect(text).toContain(endings[surface])
  expect(text).not.toContain('"error":{')
}

function expectEvent({ status, headers, text }: Seen, { surface }: Cell, code: string, words: string): void {
  expect(status).toBe(200)
  expect(headers.get('content-type')).toStartWith('text/event-stream')
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  if (surface === 'responses') {
    expect(last).toStartWith('event: response.failed\n')
    expect(last).toContain(`"code":"${code}"`)
    expect(text).not.toContain('event: response.completed')
    return
  }
  if (surface === 'gemini') {
    const { error } = JSON.parse(last.slice('data: '.length)) as { error: { message: string; details: object[] } }
    expect(error.message).toContain(words)
    expect(error.details[0]).toMatchObject({ reason: code })
    expect(text).not.toContain('"finishReason"')
    return
  }
  const lead = surface === 'chat' ? 'data: ' : 'event: error\ndata: '
  expect(last).toStartWith(`${lead}{`)
  const data = JSON.parse(last.slice(lead.length)) as { error: { message: string } }
  expect<object>(data).toMatchObject({ error: { code, message: expect.stringContaining(words) } })
  expect(text).not.toMatch(/\[DONE\]|message_stop|"finish_reason":"/)
}

/** Google reports an empty account in the words of a rate limit. */
const unknownToGoogle: ReadonlySet<string> = new Set(['quota 429'])

describe.each(golden)('$fault', (row) => {
  let faults: FaultGateway
  beforeAll(async () => {
    faults = await startFaultGateway(row.fault)
  })
  afterAll(() => faults.stop())

  const callsOfBad = addressFaults.has(row.fault) ? () => 0 : (outcome: Outcome) => outcome.calls

  const own = cells.filter(({ upstream }) => upstream !== 'gemini' || !unknownToGoogle.has(row.fault))
  describe.each([...own])('$upstream provider, $surface surface, streamed: $stream', (cell) => {
    const outcome = outcomeFor(row, cell)

    test('with a healthy second route', async () => {
      // The retries that earlier cells spent come back.
      faults.clock.jump(25)
      faults.hangsUntil(1)
      const seen = await send(faults, cell, 'first')
      expectOutcome(seen, outcome.first, cell, outcome)
      const model = cellName(cell, 'first')
      expect(faults.calls(model, 0)).toHaveLength(callsOfBad(outcome))
      expect(faults.calls(model, 1)).toHaveLength(outcome.first.startsWith('hidden') ? 1 : 0)
      expect(seen.headers.get('x-tollgate-attempts')).toBe(String(outcome.attempts[0]))
      expect(seen.headers.get('x-tollgate-provider')).toBe(`${model}-${outcome.first === 'hidden' ? 1 : 0}`)
    })

    test('when every route does the same', async () => {
      faults.clock.jump(25)
      faults.hangsUntil(1)
      const seen = await send(faults, cell, 'all')
      expectOutcome(seen, outcome.all, cell, outcome)
      const model = cellName(cell, 'all')
      const isOne = outcome.all === outcome.first
      const bad = callsOfBad(outcome)
      // Three calls are all a request gets, a replay over a fresh socket included.
      const ofSecond = isOne ? 0 : Math.min(bad, 3 - bad)
      const isEarly = isOne || outcome.all.startsWith('event')
      expect(faults.calls(model, 0)).toHaveLength(bad === 0 || isEarly ? bad : outcome.attempts[1] - ofSecond)
      expect(faults.calls(model, 1)).toHaveLength(ofSecond)
      expect(seen.headers.get('x-tollgate-attempts')).toBe(String(outcome.attempts[1]))
      const isFirstAgain = outcome.attempts[1] === 3 && outcome.calls < 2
      expect(seen.headers.get('x-tollgate-provider')).toBe(`${model}-${isEarly || isFirstAgain ? 0 : 1}`)
    })

    // What a route learns depends on the provider's dialect, and on whether its answer is translated.
    if (cell.upstream === 'chat' && (cell.surface === 'responses' || cell.surface === 'gemini')) return
    test('leaves the route as it should', async () => {
      faults.clock.jump(25)
      const times = outcome.all.startsWith('interrupted') ? 20 : 5
      faults.hangsUntil(times)
      await Promise.all(Array.from({ length: times }, () => send(faults, cell, 'alone')))
      expect(await faults.health(cellName(cell, 'alone'))).toBe(row.health)
    })
  })
})
