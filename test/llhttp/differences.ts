// Our reader of requests against llhttp, the parser of Node, on generated requests. Both must read the same requests and
// accept the same bytes, except for the differences that are listed here, each with its reason. By hand:
// `bun run test/llhttp/differences.ts --inputs 1000000`.

import { isKept, type RequestHead, RequestReader, refusalOf } from '../../src/http/server/request-reader.ts'
import { HttpFault } from '../../src/wire/http-message.ts'
import { scriptOptions } from '../parts/script-options.ts'
import { randomFrom, requestPieces } from './requests.ts'

interface Listed {
  /** `we refuse: …` with our reason, `we accept …` with the error of llhttp. */
  readonly difference: string
  /** What the input must contain. */
  readonly only?: RegExp
  readonly reason: string
}

export const listed: readonly Listed[] = [
  {
    difference: 'we refuse: the host is missing',
    reason: 'RFC 9112, section 3.2: 400. Node checks it in JavaScript, not in llhttp',
  },
  { difference: 'we refuse: it has two hosts', reason: 'the same' },
  {
    difference: 'we refuse: the host is malformed',
    reason: 'the same; Node does not check it at all',
  },
  {
    difference: 'we refuse: the expectation is not known',
    only: /expect:/i,
    reason: 'RFC 9110, section 10.1.1: 417. Node answers it in JavaScript',
  },
  {
    difference: 'we refuse: the transfer coding is not supported',
    only: /transfer-encoding/i,
    reason: 'only `chunked`, once, without a length and in HTTP/1.1; llhttp also takes other codings before it',
  },
  {
    difference: 'we refuse: the length is no number',
    only: /content-length/i,
    reason: 'a length of sixteen digits or more, which llhttp counts in 64 bits',
  },
  {
    difference: 'we refuse: the head of the request is malformed',
    reason:
      'llhttp takes several blanks in the request line, folded headers, a request line without a version, and more',
  },
  {
    difference: 'we refuse: it is not HTTP',
    reason: 'llhttp skips any number of CR and LF before a request; we skip empty lines',
  },
  {
    difference: 'we refuse: a line does not end with CRLF',
    only: /[^\r]\n/,
    reason: 'llhttp waits for more of a request of HTTP/0.9, whose line may end with a line feed',
  },
  {
    difference: 'we refuse: the target is not a path',
    reason: 'llhttp takes `*` and any scheme; a host in a target must leave no doubt where it ends',
  },
  { difference: 'we refuse: the version is not HTTP/1.1', reason: 'llhttp takes 0.9 and 2.0' },
  { difference: 'we refuse: the head is too long', only: /[\s\S]{16000}/, reason: 'Node sets the limit, not llhttp' },
  {
    difference: 'we refuse: it has more than 200 headers',
    only: /(?:x: ?y?\r\n){50}/,
    reason: 'Node drops headers beyond its limit of 2,000 without an error',
  },
  {
    difference: 'we refuse: a chunk is malformed',
    only: /;|[0-9a-f]{14}/i,
    reason: 'llhttp takes extensions without a name or value, and sizes of up to 16 digits',
  },
  {
    difference: 'we accept HPE_INVALID_CONTENT_LENGTH',
    only: /content-length:[^\r\n]*\t/i,
    reason: 'a tab after a value is a blank (RFC 9110, section 5.5); llhttp takes only spaces there',
  },
  {
    difference: 'we accept HPE_INVALID_TRANSFER_ENCODING',
    only: /transfer-encoding:[^\r\n]*\t/i,
    reason: 'the same',
  },
  {
    difference: 'we accept HPE_INVALID_URL',
    only: /[\x7f-\xff]/,
    reason:
      'bytes beyond ASCII in a target are served as they were sent, as nginx does; the handler refuses invalid UTF-8',
  },
  {
    difference: 'we keep the connection',
    only: /proxy-connection:[^\r\n]*close/i,
    reason: 'Proxy-Connection is no header of HTTP; llhttp reads it as Connection',
  },
  {
    difference: 'we close the connection',
    only: /connection:[^\r\n]*close/i,
    reason: '`close` beside other words, or beside `keep-alive` in HTTP/1.0, closes; llhttp keeps such a connection',
  },
]

function isListed(difference: string, text: string): boolean {
  return listed.some((row) => row.difference === difference && (row.only?.test(text) ?? true))
}

interface Outcome {
  readonly requests: readonly string[]
  /** Why the bytes after them are refused. */
  readonly fault: string | undefined
  /** The last request ends the connection, so the bytes after it do not count. */
  readonly isClosed: boolean
}

function readOurs(pieces: readonly string[]): Outcome {
  const requests: string[] = []
  const reader = new RequestReader()
  let body = ''
  try {
    for (const piece of pieces) {
      for (let input: Uint8Array = Buffer.from(piece, 'latin1'); input.length > 0; ) {
        body += Buffer.from(reader.read(input)).toString('latin1')
        const { head, isComplete, rest } = reader
        const refusal = head && refusalOf(head)
        if (refusal) throw refusal
        if (!head || !isComplete) break
        requests.push(shownOurs(head, body))
        if (!isKept(head)) return { requests, fault: undefined, isClosed: true }
        body = ''
        input = rest.slice()
        reader.reset()
      }
    }
  } catch (error) {
    if (!(error instanceof HttpFault)) throw error
    return { requests, fault: error.message, isClosed: false }
  }
  return { requests, fault: undefined, isClosed: false }
}

function shownOurs(head: RequestHead, body: string): string {
  return JSON.stringify([head.method, head.target, head.isHttp10 ? 0 : 1, [...head], body])
}

interface NodeRequest {
  readonly method: string
  readonly target: string
  readonly minor: number
  /** Names and values in turns. */
  readonly fields: readonly string[]
  readonly body: string
  readonly isKept: boolean
}

interface NodeOutcome {
  readonly requests: readonly NodeRequest[]
  readonly fault?: string
}

function toOutcome({ requests, fault }: NodeOutcome): Outcome {
  const last = requests.findIndex((request) => !request.isKept)
  const kept = last < 0 ? requests : requests.slice(0, last + 1)
  return { requests: kept.map(shownTheirs), fault: last < 0 ? fault : undefined, isClosed: last >= 0 }
}

function shownTheirs({ method, target, minor, fields, body }: NodeRequest): string {
  const joined = new Map<string, string>()
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase()
    const before = joined.get(name)
    const value = fields[at + 1] ?? ''
    joined.set(name, before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return JSON.stringify([method, target, minor, [...joined], body])
}

/** undefined: both read the same. */
export function differenceOf(pieces: readonly string[], theirs: NodeOutcome): string | undefined {
  const [we, they] = [readOurs(pieces), toOutcome(theirs)]
  const common = Math.min(we.requests.length, they.requests.length)
  for (let at = 0; at < common; at++) if (we.requests[at] !== they.requests[at]) return 'another request'
  const [more, less] = [we.requests.length > common, they.requests.length > common]
  if (they.isClosed && !less && (more || !we.isClosed)) return 'we keep the connection'
  if (we.isClosed && !more && (less || !they.isClosed)) return 'we close the connection'
  if (more) return they.fault ? `we accept ${they.fault}` : 'we read a request more'
  if (less) return we.fault ? `we refuse: ${we.fault}` : 'we read a request less'
  if (we.fault !== undefined && they.fault === undefined) return `we refuse: ${we.fault}`
  if (we.fault !== undefined || they.fault === undefined) return undefined
  // We look at lines when they end; then they must be refused.
  const ended = readOurs([...pieces, '\r\n\r\n'])
  const isRefused = ended.fault !== undefined && ended.requests.length === common
  return isRefused ? undefined : `we accept ${they.fault}`
}

export interface Tally {
  /** Inputs by difference. */
  readonly counts: Map<string, number>
  /** The shortest input of each difference that is not listed. */
  readonly unlisted: Map<string, string>
}

const batchInputs = 1_000

/** The same inputs for the same seed. Needs Node. */
export async function compare(inputs: number, seed: number): Promise<Tally> {
  const program = `${import.meta.dir}/node-parser.mjs`
  const node = Bun.spawn(['node', '--no-deprecation', program], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const answers = linesOf(node.stdout)
  const random = randomFrom(seed)
  const counts = new Map<string, number>()
  const unlisted = new Map<string, string>()
  for (let done = 0; done < inputs; done += batchInputs) {
    const batch = Array.from({ length: Math.min(batchInputs, inputs - done) }, () => requestPieces(random))
    node.stdin.write(`${JSON.stringify(batch)}\n`)
    const { value } = await answers.next()
    if (value === undefined) throw new Error('Node has ended')
    const outcomes = JSON.parse(value) as NodeOutcome[]
    for (const [at, pieces] of batch.entries()) {
      const difference = differenceOf(pieces, outcomes[at] as NodeOutcome) ?? 'none'
      counts.set(difference, (counts.get(difference) ?? 0) + 1)
      if (difference === 'none' || isListed(difference, pieces.join(''))) continue
      const input = JSON.stringify(pieces)
      if (input.length < (unlisted.get(difference)?.length ?? Number.POSITIVE_INFINITY)) unlisted.set(difference, input)
    }
  }
  node.stdin.end()
  await node.exited
  return { counts, unlisted }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of stream) {
    const [first = '', ...more] = decoder.decode(bytes, { stream: true }).split('\n')
    text += first
    for (const next of more) {
      yield text
      text = next
    }
  }
  return undefined
}

if (import.meta.main) {
  const usage = `bun run test/llhttp/differences.ts -- [options]
  --inputs N      generated inputs (1000000)
  --seed N        the same inputs again`
  const values = scriptOptions(usage, {
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  })
  console.log(`seed ${values.seed}`)
  const { counts, unlisted } = await compare(Number(values.inputs), Number(values.seed))
  for (const [difference, count] of [...counts].sort(([, a], [, b]) => b - a)) {
    console.log(`${count.toLocaleString('en').padStart(10)}  ${difference}`)
  }
  for (const [difference, input] of unlisted) console.log(`\nNOT LISTED: ${difference}\n${input}`)
  process.exitCode = unlisted.size === 0 ? 0 : 1
}
