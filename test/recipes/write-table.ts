// `bun test/recipes/write-table.ts`: runs every client that can be had and writes the table of the documentation from
// what happened. A client that cannot be had here keeps the row it has.

import { claudeCode, findClaudeCode, runTask } from './claude-code.ts'
import type { RecipeClient, Surface } from './client.ts'
import { curl, googleClients, javascriptClients } from './clients.ts'
import { expectedOf, tidy } from './expected.ts'
import { type Gates, gateNames, startGates } from './gates.ts'
import { geminiCli } from './gemini-cli.ts'
import { pythonClients } from './python.ts'
import { type Printed, runRecipe } from './run-recipe.ts'
import { documentedRow, renderRow, writeTable } from './table.ts'

async function rowsOf(client: RecipeClient, gates: Gates): Promise<string[]> {
  const all = await runRecipe(
    client,
    gateNames.map((name) => gates.gate(name)),
  )
  const runs = gateNames.map((gate, at) => ({ gate, printed: all[at] as Printed }))
  const passed = (surface: Surface) => (name: string) =>
    runs.every(({ gate, printed }) => {
      const example = printed.example(surface, name)
      return example !== undefined && Bun.deepEquals(tidy(name, example), expectedOf(name, { client, surface, gate }))
    })
  return client.surfaces.map((surface) => renderRow(client, surface, passed(surface)))
}

function keptRows(client: RecipeClient, missing: string): string[] {
  console.log(`${client.name} ${client.version} was not run: ${missing}`)
  return client.surfaces.flatMap((surface) => documentedRow(client, surface) ?? [])
}

async function claudeRows(): Promise<string[]> {
  const found = await findClaudeCode()
  if ('reason' in found) {
    console.log(`${claudeCode.name} was not run: ${found.reason}`)
    return [documentedRow(claudeCode, 'messages') ?? []].flat()
  }
  const { exitCode, result } = await runTask(found.program)
  const worked = exitCode === 0 && String(result.result).endsWith('; all quiet')
  return [renderRow(claudeCode, 'messages', () => worked)]
}

const gates = await startGates()
try {
  const rows: string[] = []
  for (const client of [curl, ...javascriptClients()]) rows.push(...(await rowsOf(client, gates)))
  for (const { client, missing } of [...(await googleClients()), ...(await pythonClients())]) {
    rows.push(...(missing === undefined ? await rowsOf(client, gates) : keptRows(client, missing)))
  }
  rows.push(...(await claudeRows()))
  // Its test is the only thing that runs it.
  rows.push(documentedRow(geminiCli, 'gemini') ?? renderRow(geminiCli, 'gemini', () => false))
  console.log(`${writeTable(rows)}: ${rows.length} rows`)
} finally {
  await gates.stop()
}
