// A connection of the HTTP server: several requests in any pieces, on a socket that takes any part of the answers at a time,
// by a client that may leave at any moment. Every request is answered once, in order, with its own body; whatever the reader in
// http-target.ts does not understand ends the connection; and nothing of a request is left when its client has gone.

import fc from 'fast-check'
import type { IncomingRequest } from '../../src/http/server/incoming-request.ts'
import { Answer, type AnswerSink } from '../../src/pipeline/answer.ts'
import { openOwnSocket } from '../parts/own-socket.ts'
import { takeResponse } from '../parts/raw-client.ts'
import { cutAt, cuts } from './damage.ts'
import { readWhole, requestMessages, type SeenRequest } from './http-target.ts'
import { type FuzzTarget, insist } from './target.ts'

const broken = 'the body is broken'

/** The body of the request, in an answer of each kind. A PUT is answered without reading its body. */
async function echo(request: IncomingRequest): Promise<Answer> {
  const { method, url } = request
  if (method === 'PUT') return new Answer(200, {}, `${method} ${url} `)
  const read = await request.bytes().then(
    (body) => Buffer.from(body).toString('latin1'),
    () => broken,
  )
  const answer = Buffer.from(`${method} ${url} ${read}`)
  const clientLeft = async () => {}
  if (url === '/a') return new Answer(200, {}, { run: (sink) => runStream(sink, answer), clientLeft })
  if (url === '/b?c') return new Answer(200, {}, { run: (sink) => runSlowly(sink, answer), clientLeft })
  return new Answer(200, {}, answer)
}

async function runStream(sink: AnswerSink, answer: Uint8Array): Promise<void> {
  await sink.write(answer.subarray(0, 3))
  await Promise.resolve()
  await sink.write(answer.subarray(3, 7))
  sink.end(answer.subarray(7))
}

/** The headers alone, and three pieces that come later. */
async function runSlowly(sink: AnswerSink, answer: Uint8Array): Promise<void> {
  await sink.write(new Uint8Array(0))
  const third = Math.ceil(answer.length / 3)
  for (const piece of [answer.slice(0, third), answer.slice(third, 2 * third), answer.slice(2 * third)]) {
    await nextTurn()
    await sink.write(piece)
  }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** The forms that one answer may have: its status, and its body if that is 200. */
type Expected = readonly string[]

const refused = ['400', '431', '505']

/** What has to come back, each answer in all forms that it may have, and whether the server closes the connection then. */
function expectedAnswers(bytes: Uint8Array): { readonly answers: Expected[]; readonly closes: boolean } {
  const answers: Expected[] = []
  const { requests, left, begun } = readWhole(bytes)
  for (const request of requests) {
    const refusal = refusalOf(request)
    if (refusal) return { answers: [...answers, [refusal]], closes: true }
    answers.push([echoed(request, request.body)])
    if (isLast(request)) return { answers, closes: true }
  }
  if (!begun) return left === 'fault' ? { answers: [...answers, refused], closes: true } : { answers, closes: false }
  const refusal = refusalOf(begun)
  // A fault that arrives together with the head is seen before the request is served.
  if (left === 'fault') return { answers: [...answers, [refusal ?? echoed(begun, broken), '400']], closes: true }
  if (refusal) return { answers: [...answers, [refusal]], closes: true }
  return begun.method === 'PUT'
    ? { answers: [...answers, [echoed(begun, '')]], closes: isLast(begun) }
    : { answers, closes: false }
}

function echoed({ method, target }: SeenRequest, body: string): string {
  return method === 'HEAD' ? '200' : `200 ${method} ${target} ${method === 'PUT' ? '' : body}`
}

function isLast({ isHttp10, fields }: SeenRequest): boolean {
  const [, value = ''] = fields.find(([name]) => name === 'connection') ?? []
  const tokens = value.toLowerCase().split(/[ \t,]+/)
  return tokens.includes('close') || (isHttp10 && !tokens.includes('keep-alive'))
}

function refusalOf({ method, target, isHttp10, fields }: SeenRequest): string | undefined {
  if (!['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS'].includes(method)) return '501'
  if (!target.startsWith('/') && target !== 'http://h:1/e') return '400'
  const [, expected = '100-continue'] = fields.find(([name]) => name === 'expect') ?? []
  return expected === '100-continue' || isHttp10 ? undefined : '417'
}

/** The answers on the wire, in the form above. Interim ones are left out, the bodies of refusals too. */
function answersIn(received: Buffer, expected: readonly Expected[]): string[] {
  const found: string[] = []
  for (let left = received; left.length > 0; ) {
    const isBodyless = expected[found.length]?.includes('200') === true
    const taken = takeResponse(left, isBodyless && left.indexOf('HTTP/1.1 200') === 0, true)
    insist(taken !== undefined, `not an answer: ${JSON.stringify(left.toString())}`)
    if (!taken) break
    const { status, body } = taken.response
    left = left.subarray(taken.end)
    if (status >= 200) found.push(status === 200 && !isBodyless ? `200 ${body}` : `${status}`)
  }
  return found
}

interface Course {
  readonly places: readonly number[]
  /** The room of the socket after each piece. */
  readonly rooms: readonly number[]
  /** The piece after which the client leaves; beyond the last: it stays. */
  readonly leavesAfter: number
}

const otherAnswer = new Uint8Array(900)
const otherRequest = Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n')

async function check(bytes: Uint8Array<ArrayBuffer>, { places, rooms, leavesAfter }: Course): Promise<void> {
  const defects: unknown[] = []
  const { server, socket, tell } = openOwnSocket({
    serve: echo,
    onDefect(error) {
      defects.push(error)
      return new Answer(500, {})
    },
  })
  // Its answers are put together where those of every connection are.
  const other = openOwnSocket({ serve: () => new Answer(200, {}, otherAnswer), onDefect: () => new Answer(500, {}) })
  const cut = cutAt(bytes, places)
  for (const [at, piece] of cut.entries()) {
    socket.room = rooms[at] ?? Number.POSITIVE_INFINITY
    if (piece.length > 0) tell('data', piece.slice())
    other.tell('data', otherRequest)
    await nextTurn()
    if (at === leavesAfter) break
    if (at % 2 === 0) tell('drain')
  }
  const hasLeft = leavesAfter < cut.length
  if (!hasLeft) {
    socket.room = Number.POSITIVE_INFINITY
    let quietTurns = 0
    for (let before = ''; quietTurns < 12; quietTurns++) {
      tell('drain')
      await nextTurn()
      const now = `${socket.received.length} ${server.running}`
      if (now !== before) quietTurns = 0
      before = now
    }
    const { answers, closes } = expectedAnswers(bytes)
    const found = answersIn(socket.received, answers)
    // A client that asked whether to send a body that is not wanted is not served further.
    const asked = /expect: 100-continue/i.test(Buffer.from(bytes).toString('latin1'))
    const isRight =
      found.every((answer, at) => answers[at]?.includes(answer)) && (asked || found.length === answers.length)
    insist(isRight, `answered ${JSON.stringify(found)} instead of ${JSON.stringify(answers)}`)
    const isClosed = socket.calls.includes('shutdown')
    insist(asked || isClosed === closes, `closed: ${isClosed}`)
  }
  tell('close')
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  insist(server.running === 0, `${server.running} requests are left`)
  insist(!socket.calls.includes('late write'), 'bytes were written after the end')
  insist(defects.length === 0, `a defect: ${defects[0]}`)
}

const course: fc.Arbitrary<Course> = fc.record({
  places: cuts,
  rooms: fc.array(fc.oneof(fc.nat(300), fc.constant(Number.POSITIVE_INFINITY)), { maxLength: 6 }),
  leavesAfter: fc.oneof({ weight: 4, arbitrary: fc.constant(9) }, fc.nat(5)),
})

export const httpConnectionTarget: FuzzTarget = {
  name: 'http-connection',
  shareInputs: 400,
  open: () => ({ property: fc.asyncProperty(requestMessages, course, check), examples: [] }),
}
