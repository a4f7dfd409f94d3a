// The tests of one client: its recipe through each of its surfaces, behind every gate, with one expectation for all.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { RecipeClient } from './client.ts'
import { expectedOf, tidy } from './expected.ts'
import { type GateName, type Gates, gateNames, startGates, type UpstreamCall } from './gates.ts'
import { type Printed, runRecipe } from './run-recipe.ts'
import { documentedRow, renderRow } from './table.ts'

const paths = { 'openai-chat': '/v1/chat/completions', 'anthropic-messages': '/v1/messages' }
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
/** The picture as each dialect has it. */
const pictures = {
  'openai-chat': { type: 'image_url', image_url: { url: `data:image/png;base64,${dot}` } },
  'anthropic-messages': { type: 'image', source: { type: 'base64', media_type: 'image/png', data: dot } },
}

export function describeClients(clients: readonly RecipeClient[]): void {
  let gates: Gates
  beforeAll(async () => {
    gates = await startGates()
  })
  afterAll(() => gates.stop())
  for (const client of clients) {
    let runs: Promise<ReadonlyMap<GateName, Run>> | undefined
    for (const gate of gateNames) {
      describe(`${client.name} ${client.version}, ${gate} behind the gateway`, () => {
        let run: Run | undefined
        beforeAll(async () => {
          runs ??= runEverywhere(client, gates)
          run = (await runs).get(gate)
        })
        describe.each([...client.surfaces])('%s surface', (surface) => {
          test.each(client.examples.filter((name) => name !== 'count' || surface === 'messages'))('%s', (name) => {
            const printed = run?.printed.example(surface, name)
            if (printed === undefined) throw new Error(`ended before this example:\n${run?.printed.output}`)
            expect(tidy(name, printed)).toEqual(expectedOf(name, { client, surface, gate }))
          })
        })
        if (gate !== 'sandbox') {
          test('the provider was spoken to in its own dialect, and saw the picture', () => {
            const asked = (run?.calls ?? []).filter(({ path }) => !path.endsWith('/count_tokens'))
            expect(new Set(asked.map(({ path }) => path))).toEqual(new Set([paths[gate]]))
            const looks = asked.filter(({ body }) => JSON.stringify(body).includes('what is in this picture'))
            expect(looks).toHaveLength(client.surfaces.length)
            for (const { body } of looks)
              expect(contentOf(body)).toContainEqual(expect.objectContaining(pictures[gate]))
          })
        }
      })
    }
    test.each([...client.surfaces])(
      `${client.name} ${client.version}, %s surface, is in the documentation`,
      (surface) => {
        expect(documentedRow(client, surface)).toBe(renderRow(client, surface, () => true))
      },
    )
  }
}

interface Run {
  readonly printed: Printed
  /** The calls that reached the provider meanwhile. */
  readonly calls: readonly UpstreamCall[]
}

async function runEverywhere(client: RecipeClient, gates: Gates): Promise<ReadonlyMap<GateName, Run>> {
  const all = gateNames.map((name) => gates.gate(name))
  const before = all.map(({ calls }) => calls.length)
  const printed = await runRecipe(client, all)
  return new Map(
    all.map(({ name, calls }, at) => [name, { printed: printed[at] as Printed, calls: calls.slice(before[at]) }]),
  )
}

function contentOf(body: unknown): unknown {
  return (body as { messages: { content: unknown }[] }).messages[0]?.content
}
