// Loaded into the gateway's process before it, in each of its threads: counts the statements that are run on SQLite and
// the bytes that the program's own calls copy, and answers on a socket. It changes nothing of what the gateway does, except
// that the main thread's intervals do nothing between a mark and `mark end`.

import { heapStats } from 'bun:jsc'
import { Database, type Statement } from 'bun:sqlite'
import { openSync, writeSync } from 'node:fs'

/** The request in one line on the socket; a mark is only written to /dev/null, where a trace shows it. */
export type WorkQuestion = 'read' | 'collect' | `mark ${string}`

export interface ThreadWork {
  readonly statements: number
  readonly commits: number
  /** Statements that moved charges from the journal to their tables, many at once and some time later. */
  readonly applied: number
  /** By the program's own calls: typed arrays, buffers, encoders, decoders, whole bodies. */
  readonly copiedBytes: number
  /** Parts of typed arrays that are not copied. Each costs as much as some kilobytes of copies. */
  readonly views: number
  /** As they stand; of what is alive only after `collect`. */
  readonly heapBytes: number
  readonly objects: number
  /** Everything on the heap, dead or alive: between two collections it only grows. */
  readonly cells: number
}

let statements = 0
let commits = 0
let applied = 0
let copiedBytes = 0
let views = 0

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Puts a function in the place of another and calls that one with the same. */
function wrap(owner: object, name: string, seen: (result: unknown, args: readonly unknown[]) => void): void {
  const real = Reflect.get(owner, name) as Method
  const counted: Method = function (...args) {
    const result = real.apply(this, args)
    seen(result, args)
    return result
  }
  Reflect.set(owner, name, counted)
}

/** What the gateway does every few seconds, so that a slow machine does not count it with a request. */
const housekeeping = /^\s*PRAGMA\b|\bdeliveries\b/i
/** The statements of the transaction that is open: of requests, and those that apply the journal. */
let open: { statements: number; isApplying: boolean } | undefined

function countStatement(text: string): void {
  if (housekeeping.test(text)) return
  if (/^\s*BEGIN\b/i.test(text)) {
    // A snapshot is read on its own connection, and never committed.
    if (!Bun.isMainThread) open = { statements: 1, isApplying: false }
  } else if (/^\s*COMMIT\b/i.test(text)) {
    if (open?.isApplying) applied += open.statements + 1
    else if (open && open.statements > 1) {
      statements += open.statements + 1
      commits++
    }
    open = undefined
  } else if (open) {
    open.statements++
    open.isApplying ||= /\bDELETE FROM journal\b/.test(text)
  } else if (/\bFROM journal\b/.test(text)) {
    applied++
  } else {
    statements++
    // A statement without a transaction is one.
    if (/^\s*INSERT\b/.test(text)) commits++
  }
}

function countScript(text: unknown): void {
  for (const part of String(text).split(';')) if (part.trim() !== '') countStatement(part)
}

/** The methods of a statement are its own, so each that is prepared is wrapped. */
function countStatements(): void {
  wrap(Database.prototype, 'prepare', (statement, [text]) => {
    for (const name of ['run', 'all', 'get', 'values', 'iterate'])
      wrap(statement as Statement, name, () => countStatement(String(text)))
  })
  wrap(Database.prototype, 'run', (_, [text]) => countScript(text))
}

const lengthOf = (value: unknown): number => {
  if (typeof value === 'string') return value.length
  if (typeof value === 'object' && value !== null && 'byteLength' in value) return Number(value.byteLength)
  return 0
}
const countResult = (result: unknown): void => {
  copiedBytes += lengthOf(result)
}
const countInput = (_: unknown, [input]: readonly unknown[]): void => {
  copiedBytes += lengthOf(input)
}
const countWhole = (result: unknown): void => {
  void Promise.resolve(result).then(countResult, () => {})
}

function countCopies(): void {
  const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object
  wrap(typedArray, 'set', countInput)
  wrap(typedArray, 'slice', countResult)
  wrap(typedArray, 'subarray', () => views++)
  wrap(ArrayBuffer.prototype, 'slice', countResult)
  wrap(Buffer, 'concat', countResult)
  wrap(Buffer.prototype, 'toString', countResult)
  wrap(Buffer.prototype, 'copy', (result) => {
    copiedBytes += Number(result)
  })
  wrap(TextEncoder.prototype, 'encode', countResult)
  wrap(TextDecoder.prototype, 'decode', countInput)
  for (const body of [Request.prototype, Response.prototype])
    for (const name of ['arrayBuffer', 'bytes', 'text']) wrap(body, name, countWhole)
}

let isMarked = false

/**
 * Skips intervals between two marks. The gateway looks at its load every 20 ms, which makes objects: on a busy machine a
 * request takes long, and thirty to a hundred of these objects would be counted with each.
 */
function holdIntervals(): void {
  const setRealInterval = globalThis.setInterval
  const held = (run: () => void, milliseconds: number) => setRealInterval(() => !isMarked && run(), milliseconds)
  globalThis.setInterval = held as typeof setInterval
}

/** A thread does not load what its process was asked to load. */
function countThreads(): void {
  const RealWorker = globalThis.Worker
  globalThis.Worker = class extends RealWorker {
    constructor(url: string | URL, options: WorkerOptions = {}) {
      super(url, { ...options, preload: [import.meta.path] })
    }
  }
}

/** Objects that a collection finds dead may release more, in a later turn of the event loop. */
async function collect(): Promise<void> {
  for (let round = 0; round < 4; round++) {
    Bun.gc(true)
    await Bun.sleep(50)
  }
  Bun.gc(true)
}

async function read(question: string): Promise<ThreadWork> {
  if (question === 'collect') await collect()
  const { heapSize, objectCount, objectTypeCounts } = heapStats()
  // Without hidden classes, which the runtime makes as it warms up: none to 17 of them fall on one request.
  const { Structure: classes = 0, PropertyTable: tables = 0 } = objectTypeCounts
  const cells = Object.values(objectTypeCounts).reduce((sum, count) => sum + count, 0) - classes - tables
  return { statements, commits, applied, copiedBytes, views, heapBytes: heapSize, objects: objectCount, cells }
}

const socketPath = process.env.WORK_PROBE
if (socketPath !== undefined) {
  countStatements()
  if (Bun.isMainThread) {
    countCopies()
    countThreads()
    holdIntervals()
  }
  const nowhere = openSync('/dev/null', 'w')
  Bun.listen({
    // One thread answers requests, the other writes.
    unix: `${socketPath}-${Bun.isMainThread ? 'main' : 'writer'}`,
    socket: {
      async data(socket, bytes) {
        const question = bytes.toString('latin1').trim()
        if (question.startsWith('mark ')) {
          writeSync(nowhere, question)
          isMarked = question !== 'mark end'
        }
        socket.end(`${JSON.stringify(await read(question))}\n`)
      },
    },
  }).unref()
}
