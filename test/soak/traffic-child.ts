// The clients as a separate process: so many calls a second on all surfaces, of every kind that the gateway serves;
// a share of them leaves in the middle. Prints its counts every second; on its input the line `pause` keeps it from
// sending until `resume`, and `stop` lets what runs end.

import { isWhole } from '../parts/crash-client.ts'
import { type Order, promptOf } from '../parts/crash-upstream.ts'
import { addressed, allSurfaces, inWordsOf, type TestSurface } from '../parts/surfaces.ts'
import { letIn, type TrafficCounts, type TrafficPlan } from './counts.ts'

const runningMax = 1000
const oddMax = 10
const models = ['test/chat', 'test/messages', 'test/either', 'test/either']
const sandboxModels = ['sandbox/echo', 'sandbox/tools', 'sandbox/think', 'sandbox/cache', 'sandbox/flaky']

const plan = JSON.parse(process.argv[2] ?? '') as TrafficPlan
const ends: Record<string, number> = {}
const odd: string[] = []
let asked = 0
let running = 0
let skipped = 0
let isPaused = false
let isStopping = false

function below(limit: number): number {
  return Math.floor(Math.random() * limit)
}

function oneOf<T>(things: readonly T[]): T {
  return things[below(things.length)] as T
}

const parameters = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }
const toolOf: Record<TestSurface['name'], object> = {
  chat: { type: 'function', function: { name: 'look', parameters } },
  messages: { name: 'look', input_schema: parameters },
  responses: { type: 'function', name: 'look', parameters, strict: false },
  gemini: { functionDeclarations: [{ name: 'look', parametersJsonSchema: parameters }] },
}

interface Call {
  readonly surface: TestSurface
  readonly stream: boolean
  readonly path: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

function randomCall(): Call {
  const surface = oneOf(allSurfaces)
  const stream = Math.random() < 0.6
  const pieces = 1 + below(20)
  const order: Order = { inputTokens: 1 + below(500), outputTokens: 1 + below(300), pieces, pauseMs: below(60) }
  // Some prompts are long: what is kept of them would show.
  const padding = Math.random() < 0.1 ? ` ${'long '.repeat(below(4000))}` : ''
  const members = {
    model: Math.random() < 0.15 ? oneOf(sandboxModels) : oneOf(models),
    max_tokens: 2000,
    messages: [{ role: 'user', content: promptOf(order) + padding }],
    ...(stream && { stream }),
    ...(stream && surface.name === 'chat' && Math.random() < 0.5 && { stream_options: { include_usage: true } }),
    ...(Math.random() < 0.15 && { tools: [toolOf[surface.name]] }),
  }
  const { path, body } = addressed(surface, JSON.stringify(inWordsOf(surface, members)))
  // A few that are refused before a provider is called.
  const text = Math.random() < 0.01 ? '{"model":' : body
  const headers: Record<string, string> = Math.random() < 0.02 ? { 'idempotency-key': crypto.randomUUID() } : {}
  return { surface, stream, path, body: text, headers }
}

function count(end: string, detail = ''): void {
  ends[end] = (ends[end] ?? 0) + 1
  if ((end === 'cut' || end === 'status 500') && odd.length < oddMax) odd.push(`${end}: ${detail}`)
}

async function callOnce(): Promise<void> {
  const call = randomCall()
  const leave = new AbortController()
  // Behind its share more of them leave: some end before they could, and who is turned away cannot leave at all.
  const isBehind = (ends.left ?? 0) < letIn({ asked, ends }) * plan.leaveShare
  const leaves = Math.random() < (isBehind ? 0.5 : 0.02)
  const timer = leaves ? setTimeout(() => leave.abort(), below(200)) : undefined
  asked++
  running++
  let status: number | undefined
  let text = ''
  try {
    const response = await fetch(plan.url + call.path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${oneOf(plan.keys)}`,
        'content-type': 'application/json',
        ...call.surface.headers,
        ...call.headers,
      },
      body: call.body,
      signal: leave.signal,
    })
    status = response.status
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true })
  } catch {
    // Events before that count.
  }
  clearTimeout(timer)
  running--
  count(endOf(call, status, text, leave.signal.aborted), `${status} ${call.body.slice(0, 200)} → ${text.slice(-300)}`)
}

function endOf({ surface, stream }: Call, status: number | undefined, text: string, left: boolean): string {
  if (status === 200 && isWhole(surface, stream, text)) return 'complete'
  if (left) return 'left'
  if (status === undefined) return 'no answer'
  if (status !== 200) return `status ${status}`
  return /^(data: \{"error"|event: error|event: response\.failed)/m.test(text) ? 'failed' : 'cut'
}

function report(): void {
  console.log(JSON.stringify({ asked, running, skipped, ends, odd } satisfies TrafficCounts))
}

async function send(): Promise<void> {
  let startedMs = performance.now()
  let due = 0
  while (!isStopping) {
    await Bun.sleep(20)
    if (isPaused) {
      // Requests that were missed meanwhile are not sent all at once afterwards.
      startedMs = performance.now()
      due = 0
      continue
    }
    // Open loop: requests are sent also while a slow gateway does not answer.
    const planned = ((performance.now() - startedMs) / 1000) * plan.callsPerSecond
    for (; due < planned; due++) {
      if (running < runningMax) void callOnce()
      else skipped++
    }
  }
}

setInterval(report, 1000)
void (async () => {
  for await (const line of console) {
    const word = line.trim()
    if (word === 'stop') isStopping = true
    else isPaused = word === 'pause'
  }
})()
await send()
while (running > 0) await Bun.sleep(20)
report()
process.exit(0)
