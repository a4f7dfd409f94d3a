// The benchmark's command line.

import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { CELLS, type Cell } from './cells.ts'
import type { Contender } from './contenders/contender.ts'
import { CONTENDERS, PEERS } from './contenders/index.ts'
import { tollgateFrom } from './contenders/tollgate.ts'

export interface Options {
  readonly rounds: number
  readonly windowMs: number
  readonly warmupMs: number
  /** Requests and stream events of each kind that a contender serves before anything is measured. */
  readonly warmRequests: number
  readonly cells: readonly Cell[]
  readonly contenders: readonly Contender[]
  readonly peersFolder: string
  readonly installPeers: boolean
  readonly json: boolean
  readonly write: boolean
  /** Draw README and plots again from what was measured before. */
  readonly render: boolean
}

/** Every figure is relative to these two. */
const ALWAYS = ['direct', 'bare']

const defaultCells = CELLS.filter((cell) => cell.byDefault)
  .map(({ id }) => id)
  .join(', ')

/** Slow contenders get no further in it, and have no compiler that needs more. */
export const WARM_UP_SECONDS_MAX = 30

export const USAGE = `npm run bench -- [options]
  --rounds N        rounds over all contenders (3)
  --seconds N       length of one measurement (1)
  --quick           1 round of half a second, after 2,000 requests of warm-up
  --warm-requests N requests of each kind before the first measurement, for at most ${WARM_UP_SECONDS_MAX} s (30000)
  --against FOLDER  also measure the Tollgate in another checkout, as \`before\`
  --all             every cell and every contender; about an hour
  --cells a,b       cells by id, or with * for any rest: chat-*; default ${defaultCells}
  --only a,b        contenders: ${CONTENDERS.map(({ name }) => name).join(', ')}; direct and bare always run
  --no-peers        leave out ${PEERS.map(({ name }) => name).join(', ')}; otherwise those that are installed run
  --install-peers   download the ones that are missing
  --peers-folder F  where they are installed and looked for (tollgate-bench-peers in the temporary folder)
  --json            every measurement as JSON instead of the table
  --write           keep the run in bench/results and write the tables and plots of bench/README.md again
  --render          measure nothing; write tables and plots again from bench/results
  --list            the ids of all cells`

export function readOptions(
  args: readonly string[],
): Options | { readonly message: string; readonly isWrong: boolean } {
  let values: ReturnType<typeof parsed>
  try {
    values = parsed(args)
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error))
  }
  if (values.help) return { message: USAGE, isWrong: false }
  if (values.list) return { message: CELLS.map(({ id }) => id).join('\n'), isWrong: false }
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3))
  const seconds = Number(values.seconds ?? (values.quick ? 0.5 : 1))
  if (!(Number.isInteger(rounds) && rounds >= 1)) return wrong('--rounds wants a whole number of at least 1')
  if (!(seconds >= 0.1)) return wrong('--seconds wants a number of at least 0.1')
  const warmRequests = Number(values['warm-requests'] ?? (values.quick ? 2_000 : 30_000))
  if (!(warmRequests >= 0)) return wrong('--warm-requests wants a number')
  const patterns = values.cells?.split(',')
  const names = values.only?.split(',')
  const unknown =
    patterns?.find((pattern) => !CELLS.some(({ id }) => matches(id, pattern))) ??
    names?.find((name) => !CONTENDERS.some((contender) => contender.name === name))
  if (unknown !== undefined) return wrong(`there is no ${unknown}`)
  const isWanted = (contender: Contender) =>
    ALWAYS.includes(contender.name) ||
    (names?.includes(contender.name) ??
      ((values.all || contender.byDefault) && !(values['no-peers'] && isPeer(contender))))
  return {
    rounds,
    windowMs: seconds * 1000,
    warmupMs: Math.min(500, seconds * 250),
    warmRequests,
    cells: CELLS.filter(
      ({ id, byDefault }) => patterns?.some((pattern) => matches(id, pattern)) ?? (values.all || byDefault),
    ),
    contenders: [
      ...CONTENDERS.filter(isWanted),
      ...(values.against === undefined ? [] : [tollgateFrom(resolve(values.against))]),
    ],
    peersFolder: values['peers-folder'] ?? join(tmpdir(), 'tollgate-bench-peers'),
    installPeers: values['install-peers'] ?? false,
    json: values.json ?? false,
    write: values.write ?? false,
    render: values.render ?? false,
  }
}

function wrong(message: string) {
  return { message: `${message}\n\n${USAGE}`, isWrong: true }
}

function isPeer(contender: Contender): boolean {
  return PEERS.includes(contender)
}

function matches(id: string, pattern: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : id === pattern
}

function parsed(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      cells: { type: 'string' },
      all: { type: 'boolean' },
      'no-peers': { type: 'boolean' },
      'install-peers': { type: 'boolean' },
      'peers-folder': { type: 'string' },
      'warm-requests': { type: 'string' },
      against: { type: 'string' },
      quick: { type: 'boolean' },
      json: { type: 'boolean' },
      write: { type: 'boolean' },
      render: { type: 'boolean' },
      list: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  }).values
}
