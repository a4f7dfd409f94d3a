// Providers that fail, before anything was said and after, on every way from provider to caller: the caller gets the
// code of the vocabulary in its own dialect, and never an ending that was not sent.

import { afterAll, describe, expect, test } from 'bun:test'
import { isResponseClient, readError } from '../parts/official-clients.ts'
import { openStage, type Pair, replyPairs } from './cells.ts'
import { faultsTable, pagePath, tableIn } from './compatibility.ts'
import { faultBody, provideFault, type ReadFault, readFault } from './fault-cells.ts'
import { type FaultFixture, faultFixtures, onSurface } from './replies/faults.ts'
import { clientsOf, type Mode, readByClient } from './replies/read-reply.ts'

const stage = await openStage(() => {})
afterAll(() => stage.stop())

const known = new Map<string, Promise<ReadFault>>()

/** The page has a table of the same outcomes. */
function faultOf(pair: Pair, fixture: FaultFixture, mode: Mode): Promise<ReadFault> {
  const name = [pair.surface, pair.model, fixture.feature, mode.stream].join()
  const read = known.get(name) ?? readFault(stage, pair, fixture, mode)
  known.set(name, read)
  return read
}

describe.each(replyPairs)('$upstream → $surface', (pair) => {
  for (const fixture of faultFixtures) {
    test(fixture.feature, async () => {
      for (const stream of [true, false]) {
        const expected = onSurface(pair.surface, stream ? fixture.streamed : fixture.whole)
        const { outcome, said, wrong, headers } = await faultOf(pair, fixture, { stream })
        expect([stream, outcome, wrong]).toEqual([stream, expected, []])
        if (fixture.says !== undefined) expect(said).toContain(fixture.says)
        for (const [name, value] of Object.entries(fixture.headers ?? {})) expect(headers.get(name)).toBe(value)

        for (const client of clientsOf[pair.surface]) {
          const begin = provideFault(stage, fixture, { stream })
          const fetching = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
            const response = await fetch(input, init)
            begin()
            return response
          }
          const body = { model: pair.model, ...faultBody({ stream }, pair) }
          const reading = readByClient(stage, client, body, { stream }, fetching)
          const [first = '', second = first] = expected.split(' ')
          // A failed response is a response to its clients.
          if (pair.surface === 'responses' && first === 'stream') {
            expect((await reading).error?.code).toBe(second)
            continue
          }
          const error = await readError(isResponseClient(client) ? 'openai 7' : client, reading)
          expect([error.status, error.code]).toEqual([first === 'stream' ? undefined : Number(first), second])
        }
      }
    })
  }
})

test('docs/compatibility.md has these outcomes', async () => {
  const table = await faultsTable(async (pair, fixture, mode) => (await faultOf(pair, fixture, mode)).outcome)
  expect(tableIn(await Bun.file(pagePath).text(), 'faults')).toBe(table)
})
