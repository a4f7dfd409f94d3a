import { expect, test } from 'bun:test'
import { measureWork, type Work } from './measure-work.ts'

// A guard against work that creeps in: it counts what requests make the gateway do, never how long that takes. Every
// upper bound stands a stated margin above what was measured three times in November 2026 (in brackets); a change that lowers
// the work lowers the bound. The lower bounds are well below: they are for counters that see nothing. bench/README.md, "The guard", says how each figure is counted.

interface Bound {
  /** Several where every kind of request has its own. */
  readonly of: (work: Work) => number | readonly number[]
  readonly atLeast: number
  readonly atMost: number
}

type Counted = 'statements' | 'reads' | 'commits' | 'syncs' | 'databaseBytes' | 'views' | 'clientWrites' | 'cells'

const alone = (kind: string, what: Counted) => {
  const isMeant = (name: string) => kind === 'any' || name.endsWith(kind)
  return ({ alone: all }: Work) => all.filter(({ kind: name }) => isMeant(name)).map((one) => one[what])
}
const copies =
  (kind: string) =>
  ({ alone: all }: Work) =>
    all.find(({ kind: name }) => name === kind)?.copiesPerByte ?? Number.NaN

const copiesBounds = (rows: Readonly<Record<string, readonly [atLeast: number, atMost: number]>>) =>
  Object.fromEntries(
    Object.entries(rows).map(([kind, [atLeast, atMost]]) => [`copies, ${kind}`, { of: copies(kind), atLeast, atMost }]),
  )

const some = (atLeast: number) => ({ atLeast, atMost: Number.POSITIVE_INFINITY })

const bounds: Readonly<Record<string, Bound>> = {
  // Its row with the charge is appended to the journal (1).
  'statements of a request by itself': { of: alone('any', 'statements'), atLeast: 0.9, atMost: 1.5 },
  // Keys, prices, limits and wallets are in memory (0).
  'reads of a request by itself': { of: alone('any', 'reads'), atLeast: 0, atMost: 0.5 },
  // The charge is in the row of the request (1).
  'commits of a request by itself': { of: alone('any', 'commits'), atLeast: 0.9, atMost: 1.5 },
  // A commit is a sync of the log (1), and every five hundredth or so a checkpoint.
  'syncs of a request by itself': { of: alone('any', 'syncs'), atLeast: 0.9, atMost: 1.5 },
  // A page of the journal (4 KB). The journal is applied a quarter of a second later, thirteen pages for four requests; a busy
  // machine does that in between (17 KB). The kind with the fewest is bounded, because applying comes at any time.
  'bytes to the database of a request by itself': {
    of: (work) => Math.min(...work.alone.map(({ databaseBytes }) => databaseBytes)),
    atLeast: 3_000,
    atMost: 22_000,
  },
  // A wave of 64 that ends at once is one statement for each commit (0.03–0.17).
  'statements of a request in a wave': { of: ({ together }) => together.statements, atLeast: 0.01, atMost: 0.4 },
  // A row for each when the journal is applied; balance, hours and the rest are shared by some hundred (1.1–1.6).
  'statements to apply a request': { of: ({ applied }) => applied, atLeast: 1, atMost: 2.2 },
  // Two to eleven commits for 64 (0.03–0.17), by how fast the disk is; one for each would be 1.
  'commits of a request in a wave': { of: ({ together }) => together.commits, atLeast: 0.01, atMost: 0.4 },
  // The same, and a checkpoint now and then, which is two or three (0.03–0.22).
  'syncs of a request in a wave': { of: ({ together }) => together.syncs, atLeast: 0.01, atMost: 0.5 },
  // A page holds several requests (1–3 KB); more if the journal is applied or checkpointed meanwhile (9 KB).
  'bytes to the database of a request in a wave': {
    of: ({ together }) => together.databaseBytes,
    atLeast: 500,
    atMost: 14_000,
  },
  // Copies of each byte the provider said: another one of all of it adds 1.0. The first is out of the socket's buffer, in
  // our HTTP client, and the last behind the head or into a chunk, in our HTTP server. How packets fall moves streams by 0.1, and by 0.5 on a busy machine.
  ...copiesBounds({
    'chat from chat, whole': [1, 3.5], // (3.14)
    'chat from messages, whole': [1, 4.6], // (4.20)
    'messages from chat, whole': [1, 4.6], // (4.25)
    'messages from messages, whole': [1, 3.5], // (3.14)
    'chat from chat, streamed': [0.5, 3.9], // (3.36)
    'chat from messages, streamed': [1, 5.1], // (4.64)
    'messages from chat, streamed': [1, 4.8], // (4.27)
    'messages from messages, streamed': [0.5, 2.9], // (2.42)
    'responses from responses, whole': [1, 3.5], // (3.18)
    'responses from chat, whole': [1, 4.7], // (4.37)
    'responses from responses, streamed': [0.5, 2.9], // (2.48)
    // The API says the whole text three times more at the end of a stream, and all members of the response in three events,
    // as Open Responses requires; the end marker is joined to the last one.
    'responses from chat, streamed': [1, 11.9], // (11.29)
  }),
  // Parts of a whole reply are read and copied in place (0): a view of it costs as much as all the rest of reading it.
  'views of a whole answer': { of: alone('whole', 'views'), atLeast: 0, atMost: 0 },
  // Records that were cut between two packets (6.5–11); some for each of 22 packets would be 44 and more.
  'views of a streamed answer': { of: alone('streamed', 'views'), atLeast: 1, atMost: 24 },
  // Objects, strings, closures and promises of a request, before the compiler removes some (429–433, 498–520 and 445–453 as bytes,
  // 819–930 translated in November 2026), and a fifth more: simpler code may need a few objects that faster code avoids. Of chat
  // 546–554 since each attempt records what it cost, and 577–580 since a spend limit may name another model and prices have
  // tiers: four functions that may wait, and their values.
  'cells, chat from chat': { of: alone('chat from chat, whole', 'cells'), atLeast: 200, atMost: 605 },
  'cells, messages from messages': { of: alone('messages from messages, whole', 'cells'), atLeast: 200, atMost: 680 },
  // A cached token costs what a cached key costs (−6.5 and 4.5, which is what two runs differ by).
  'cells of a request with an access token, beyond one with a key': {
    of: ({ alone: all }) => {
      const cells = (name: string) => all.find(({ kind }) => kind === name)?.cells ?? Number.NaN
      return cells('signed in, chat from chat, whole') - cells('chat from chat, whole')
    },
    atLeast: -60,
    atMost: 25,
  },
  // 567 before; 581 to 590 since the items of an answer are kept for an hour, for callers that refer to them; 622 to 625 for the
  // same reasons as chat.
  'cells, responses from responses': {
    of: alone('responses from responses, whole', 'cells'),
    atLeast: 200,
    atMost: 680,
  },
  'cells of a whole answer': { of: alone('whole', 'cells'), atLeast: 200, atMost: 1175 },
  // Head and body of a whole answer leave as one (1).
  'writes to the client, whole': { of: alone('whole', 'clientWrites'), atLeast: 1, atMost: 1 },
  // One for each of 22 packets of the provider, the head, and the end that waits for the charge (21–23). On a busy machine
  // several packets arrive as one (9.5).
  'writes to the client, streamed': { of: alone('streamed', 'clientWrites'), atLeast: 3, atMost: 24 },
  // The compiler still grows the heap a little (200–300 KB); a kilobyte kept of each request is 1,024,000.
  'bytes kept of 1,000 requests': {
    of: ({ heapGrowthBytes }) => heapGrowthBytes,
    atLeast: Number.NEGATIVE_INFINITY,
    atMost: 700_000,
  },
  // Connections and timers come and go (none to 230); one object kept of each request is 1,000.
  'objects kept of 1,000 requests': {
    of: ({ objectGrowth }) => objectGrowth,
    atLeast: Number.NEGATIVE_INFINITY,
    atMost: 500,
  },
  // Reads, kept bytes and kept objects may rightly be none of a request; keys and settings are read at the start, and a
  // heap with the program on it has some twenty megabytes.
  'reads since the start': { of: ({ sinceStart }) => sinceStart.reads, ...some(1) },
  'bytes on the heap': { of: ({ sinceStart }) => sinceStart.heapBytes, ...some(5_000_000) },
  'objects on the heap': { of: ({ sinceStart }) => sinceStart.objects, ...some(10_000) },
}

test.skipIf(Bun.which('strace') === null)(
  'a request takes no more statements, syncs, copies, writes and memory than it did (strace)',
  async () => {
    const work = await measureWork()
    const measured = Object.entries(bounds).map(([name, { of, ...bound }]) => ({
      name,
      ...bound,
      is: [of(work)].flat(),
    }))
    // None, or NaN, is no figure at all.
    const isWithin = ({ is, atLeast, atMost }: (typeof measured)[number]) =>
      is.length > 0 && is.every((figure) => figure >= atLeast && figure <= atMost)
    expect(measured.filter((one) => !isWithin(one))).toEqual([])
  },
)
