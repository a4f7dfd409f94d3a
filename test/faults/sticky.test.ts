// Two routes that share the load evenly: the turns of one conversation go where its first one went, since that is where
// its prompt cache is, and other conversations are spread as before.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { failoverConfig, startGateway, stopAll } from '../parts/gateway.ts'
import { bodyOf, bothSurfaces, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

const upstreams = [0, 1].map(() => startUpstream(answerHello))
const gateway = await startGateway({
  config: failoverConfig(
    upstreams.map(({ url }) => url),
    { model: 'price: { input: "1.00", output: "2.00" }', route: () => '' },
  ),
})

afterAll(() => stopAll(gateway, ...upstreams))

const prompt = 'You are careful. '.repeat(300)
const turnsEach = 3
const conversations = 40

/** The body of one turn; on Messages with the line that Claude Code puts first, which differs every time. */
function turnBody(surface: TestSurface, conversation: number, turn: number): string {
  const history = Array.from({ length: turn }, () => [
    { role: 'assistant', content: 'Hello' },
    { role: 'user', content: 'And then?' },
  ]).flat()
  const turns = [{ role: 'user', content: `Question ${conversation}` }, ...history]
  if (surface.name === 'chat') {
    return bodyOf(surface, { messages: JSON.stringify([{ role: 'system', content: prompt }, ...turns]) })
  }
  const system = [`x-anthropic-billing-header: cc_version=2.1.100; cch=${conversation}${turn};`, prompt]
  return bodyOf(surface, {
    system: JSON.stringify(system.map((text) => ({ type: 'text', text }))),
    messages: JSON.stringify(turns),
  })
}

/** A question and a tool; with a result, the call of it as well. */
function loopBody(surface: TestSurface, loop: number, result?: string): string {
  const question = { role: 'user', content: `Question ${loop}` }
  if (surface.name === 'chat') {
    const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
    const called = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: result },
    ]
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
    const turns = [question, ...(result === undefined ? [] : called)]
    return bodyOf(surface, { tools: JSON.stringify(tools), messages: JSON.stringify(turns) })
  }
  const called = [
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: result }] },
  ]
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }]
  const turns = [question, ...(result === undefined ? [] : called)]
  return bodyOf(surface, { tools: JSON.stringify(tools), messages: JSON.stringify(turns) })
}

/** Which upstream a request went to. */
async function routeOf(surface: TestSurface, body: string): Promise<number> {
  const before = upstreams.map(({ calls }) => calls.length)
  const response = await ask(gateway, surface, body)
  await response.text()
  expect(response.status).toBe(200)
  return upstreams.findIndex(({ calls }, i) => calls.length > (before[i] ?? 0))
}

describe.each(bothSurfaces)('$name', (surface) => {
  test('every turn of a conversation goes where the first one went, and conversations are spread', async () => {
    const places: number[] = []
    for (let conversation = 0; conversation < conversations; conversation++) {
      const routes: number[] = []
      for (let turn = 0; turn < turnsEach; turn++) {
        routes.push(await routeOf(surface, turnBody(surface, conversation, turn)))
      }
      expect(new Set(routes).size).toBe(1)
      places.push(routes[0] ?? -1)
    }
    // All forty in one place by chance: once in 500 billion runs.
    expect(new Set(places).size).toBe(2)
  })

  test('a tool loop stays where it began, however short its beginning', async () => {
    for (let loop = 0; loop < conversations; loop++) {
      const begin = await routeOf(surface, loopBody(surface, loop))
      expect(await routeOf(surface, loopBody(surface, loop, 'x'.repeat(5000)))).toBe(begin)
    }
  })
})
