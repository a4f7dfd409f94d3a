// The tests of one client: its recipe through each of its surfaces, behind every gate, with one expectation for all.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { dialectOfPath } from '../conformance/cells.ts'
import { counts, type RecipeClient } from './client.ts'
import { expectedOf, tidy } from './expected.ts'
import { type GateName, type Gates, gateNames, startGates, type UpstreamCall } from './gates.ts'
import { type Printed, runRecipe } from './run-recipe.ts'
import { documentedRow, renderRow } from './table.ts'

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
/** The dialect behind each gate, and the picture as it has it. */
const expected = {
  'openai-chat': {
    dialect: 'chat',
    picture: { type: 'image_url', image_url: { url: `data:image/png;base64,${dot}` } },
  },
  'anthropic-messages': {
    dialect: 'messages',
    picture: { type: 'image', source: { type: 'base64', media_type: 'image/png', data: dot } },
  },
  'openai-responses': {
    dialect: 'responses',
    picture: { type: 'input_image', image_url: `data:image/png;base64,${dot}` },
  },
  gemini: { dialect: 'gemini', picture: { inlineData: { mimeType: 'image/png', data: dot } } },
} as const

export function describeClients(clients: readonly RecipeClient[]): void {
  let gates: Gates
  beforeAll(async () => {
    gates = await startGates()
  })
  afterAll(() => gates.stop())
  for (const client of clients) {
    let runs: Promise<ReadonlyMap<GateName, Run>> | undefined
    for (const gate of gatesOf(client)) {
      describe(`${client.name} ${client.version}, ${gate} behind the gateway`, () => {
        let run: Run | undefined
        beforeAll(async () => {
          runs ??= runEverywhere(client, gates)
          run = (await runs).get(gate)
        })
        describe.each([...client.surfaces])('%s surface', (surface) => {
          test.each(client.examples.filter((name) => name !== 'count' || counts(surface)))('%s', (name) => {
            const printed = run?.printed.example(surface, name)
            if (printed === undefined) throw new Error(`ended before this example:\n${run?.printed.output}`)
            expect(tidy(name, printed)).toEqual(expectedOf(name, { client, surface, gate }))
          })
        })
        if (gate !== 'sandbox') {
          test('the provider was spoken to in its own dialect, and saw the picture', () => {
            const asked = (run?.calls ?? []).filter(({ path }) => !/count_?tokens$/i.test(path))
            const { dialect, picture } = expected[gate]
            expect(new Set(asked.map(({ path }) => dialectOfPath(path)))).toEqual(new Set([dialect]))
            const looks = asked.filter(({ body }) => JSON.stringify(body).includes('what is in this picture'))
            expect(looks).toHaveLength(client.surfaces.length)
            for (const { body } of looks) expect(contentOf(body)).toContainEqual(expect.objectContaining(picture))
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

const gatesOf = (client: RecipeClient): readonly GateName[] => client.gates ?? gateNames

interface Run {
  readonly printed: Printed
  /** The calls that reached the provider meanwhile. */
  readonly calls: readonly UpstreamCall[]
}

async function runEverywhere(client: RecipeClient, gates: Gates): Promise<ReadonlyMap<GateName, Run>> {
  const all = gatesOf(client).map((name) => gates.gate(name))
  const before = all.map(({ calls }) => calls.length)
  const printed = await runRecipe(client, all)
  return new Map(
    all.map(({ name, calls }, at) => [name, { printed: printed[at] as Printed, calls: calls.slice(before[at]) }]),
  )
}

function contentOf(body: unknown): unknown {
  const { messages, input, contents } = body as Record<string, { content?: unknown; parts?: unknown }[] | undefined>
  const [first] = messages ?? input ?? contents ?? []
  return first?.content ?? first?.parts
}
