// The benchmark's command line.

import { parseArgs } from 'node:util'
import { CELLS, type Cell } from './cells.ts'
import type { Contender } from './contenders/contender.ts'
import { CONTENDERS } from './contenders/index.ts'

export interface Options {
  readonly rounds: number
  readonly windowMs: number
  readonly warmupMs: number
  readonly cells: readonly Cell[]
  readonly contenders: readonly Contender[]
  readonly peers: boolean
  readonly json: boolean
}

export const USAGE = `npm run bench -- [options]
  --rounds N        rounds over all contenders (5)
  --seconds N       length of one measurement (2)
  --only a,b        contenders: ${CONTENDERS.map((contender) => contender.name).join(', ')}; direct and bare always run
  --cells a,b       cells: ${CELLS.map((cell) => cell.id).join(', ')}
  --no-peers        do not install and run other people's gateways
  --quick           2 rounds of 1 second
  --json            every measurement as JSON instead of the table`

export function readOptions(args: readonly string[]): Options | { readonly wrong: string } {
  let values: ReturnType<typeof parsed>
  try {
    values = parsed(args)
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) }
  }
  if (values.help) return { wrong: '' }
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 5))
  const seconds = Number(values.seconds ?? (values.quick ? 1 : 2))
  if (!(Number.isInteger(rounds) && rounds >= 1)) return { wrong: '--rounds wants a whole number of at least 1' }
  if (!(seconds >= 0.1)) return { wrong: '--seconds wants a number of at least 0.1' }
  const cellIds = values.cells?.split(',')
  const names = values.only?.split(',')
  const unknown =
    cellIds?.find((id) => !CELLS.some((cell) => cell.id === id)) ??
    names?.find((name) => !CONTENDERS.some((contender) => contender.name === name))
  if (unknown !== undefined) return { wrong: `there is no ${unknown}` }
  return {
    rounds,
    windowMs: seconds * 1000,
    warmupMs: Math.min(500, seconds * 250),
    cells: CELLS.filter((cell) => cellIds?.includes(cell.id) ?? cell.byDefault),
    // Every figure is told against these two.
    contenders: CONTENDERS.filter(({ name }) => !names || names.includes(name) || name === 'direct' || name === 'bare'),
    peers: !values['no-peers'],
    json: values.json ?? false,
  }
}

function parsed(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      cells: { type: 'string' },
      'no-peers': { type: 'boolean' },
      quick: { type: 'boolean' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  }).values
}
