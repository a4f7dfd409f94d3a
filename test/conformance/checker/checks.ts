// The checks, in the order of the report. Each asks the session for what it looks at and says what it found; none knows
// a dialect.

import {
  answered,
  type CheckResult,
  failed,
  judged,
  passed,
  shortened,
  skipped,
  violationNotes,
} from './check-result.ts'
import { isAnswered } from './endpoint.ts'
import { type ReplyContent, totalInput } from './reply-content.ts'
import { type Answer, isReply, phrase, type Session } from './session.ts'
import { isMembers, listOf, membersOf, parseJson } from './violation.ts'

export interface Check {
  readonly name: string
  run(session: Session): Promise<CheckResult>
}

const both = [{ stream: false }, { stream: true }] as const

export const checks: readonly Check[] = [
  { name: 'models list', run: checkModels },
  { name: 'text', run: async (session) => checkText(session, await session.ask('text', { stream: false })) },
  { name: 'text, streamed', run: async (session) => checkText(session, await session.ask('text', { stream: true })) },
  { name: 'stop reason', run: checkStop },
  { name: 'usage', run: checkUsage },
  { name: 'tool call', run: async (session) => checkCall(session, await session.ask('call', { stream: false })) },
  {
    name: 'tool call, streamed',
    run: async (session) => checkCall(session, await session.ask('call', { stream: true })),
  },
  { name: 'tool round trip', run: checkRoundTrip },
  { name: 'parallel tools', run: checkParallel },
  { name: 'stream grammar', run: checkGrammar },
  { name: 'UTF-8', run: checkUtf8 },
  { name: 'error 400', run: checkBadRequest },
  { name: 'error 401', run: checkBadKey },
  { name: 'error 404', run: checkBadModel },
]

async function checkModels({ probe, endpoint, model }: Session): Promise<CheckResult> {
  const result = await endpoint.models()
  if (!isAnswered(result)) return failed(result.unanswered)
  if (result.status !== 200) return failed(answered(result))
  const ids = listOf(membersOf(result.json).data).map((item) => membersOf(item).id)
  const among = ids.includes(model) ? `${model} among them` : `${model} is not among them`
  return judged(probe.modelsFaults(result.json), `${ids.length} listed, ${among}`)
}

function checkText({ probe }: Session, answer: Answer): CheckResult {
  if (!isReply(answer)) return failed(...answer.faults)
  const { content, violations, exchange } = answer
  const isStream = exchange.events.length > 0
  // The grammar of a stream has a separate row.
  const faults = isStream ? [] : violationNotes(violations)
  if (content.text === '') faults.push('there is no text in the reply')
  if (content.stop === '') faults.push(`it does not say why it ended (${probe.stops.end} expected)`)
  return judged(faults, `${isStream ? `${exchange.events.length} events, ` : ''}"${shortened(content.text)}"`)
}

async function checkStop(session: Session): Promise<CheckResult> {
  const { end, length } = session.probe.stops
  const faults: string[] = []
  for (const mode of both) {
    for (const [name, wanted] of [
      ['text', end],
      ['capped', length],
    ] as const) {
      const answer = await session.ask(name, mode)
      const what = `${name === 'text' ? 'a complete answer' : 'an answer cut off by its cap'}${streamed(mode)}`
      if (!isReply(answer)) faults.push(`${what}: ${answer.faults.join('; ')}`)
      else if (answer.content.stop !== wanted)
        faults.push(`${what} says ${answer.content.stop || 'nothing'}, not ${wanted}`)
    }
  }
  return judged(faults, `${end} when complete, ${length} when cut off`)
}

async function checkUsage(session: Session): Promise<CheckResult> {
  const faults: string[] = []
  const inputs: number[] = []
  for (const mode of both) {
    const answer = await session.ask('text', mode)
    if (!isReply(answer)) return failed(...answer.faults)
    const { usage } = answer.content
    const what = mode.stream ? 'the stream' : 'the reply'
    if (!usage) faults.push(`${what} has no usage`)
    else {
      if (totalInput(usage) <= 0) faults.push(`${what} counts no input tokens`)
      if (usage.output <= 0) faults.push(`${what} counts no output tokens`)
      if (Math.min(usage.input, usage.cacheRead, usage.cacheWrite) < 0) faults.push(`${what} counts below zero`)
      inputs.push(totalInput(usage))
    }
  }
  const [whole, stream] = inputs
  if (inputs.length === 2 && whole !== stream) {
    faults.push(`the same prompt counts ${whole} tokens in a reply and ${stream} in a stream`)
  }
  return judged(faults, `${whole} tokens in, streamed or not`)
}

function checkCall({ probe }: Session, answer: Answer): CheckResult {
  if (!isReply(answer)) return failed(...answer.faults)
  const { content, violations, exchange } = answer
  if (content.calls.length === 0) {
    if (answer.demanded) return failed('a call is demanded and none comes; does this model have tools?')
    return skipped(`the model calls no tool, it says "${shortened(content.text)}"`)
  }
  const faults = [...(exchange.events.length > 0 ? [] : violationNotes(violations)), ...callFaults(content)]
  if (!probe.stops.calls.includes(content.stop)) {
    faults.push(`it ends with ${content.stop || 'nothing'}, not ${probe.stops.calls[0]}`)
  }
  return judged(faults, content.calls.map(({ name, arguments: json }) => `${name} ${shortened(json)}`).join(', '))
}

function callFaults({ calls }: ReplyContent): string[] {
  const faults = calls.flatMap(({ id, name, arguments: json }) => [
    ...(id === '' ? [`the call of ${name || 'a tool'} has no id`] : []),
    ...(name === '' ? ['a call has no name'] : []),
    ...(isMembers(parseJson(json)) ? [] : [`the arguments are no JSON object: ${shortened(json) || '(empty)'}`]),
  ])
  const ids = new Set(calls.map(({ id }) => id))
  return ids.size < calls.length ? [...faults, 'two calls have one id'] : faults
}

async function checkRoundTrip(session: Session): Promise<CheckResult> {
  const faults: string[] = []
  let text = ''
  for (const mode of both) {
    const answer = await session.roundTrip(mode)
    if (!answer) return skipped('there was no call to answer')
    if (!isReply(answer)) faults.push(`the results are refused${streamed(mode)}: ${answer.faults.join('; ')}`)
    else if (answer.content.text === '') faults.push(`no text comes back for the results${streamed(mode)}`)
    else text = answer.content.text
  }
  return judged(faults, `"${shortened(text)}"`)
}

async function checkParallel(session: Session): Promise<CheckResult> {
  const faults: string[] = []
  let names = ''
  for (const mode of both) {
    const answer = await session.ask('parallel', mode)
    if (!isReply(answer)) return failed(...answer.faults)
    const { calls } = answer.content
    if (calls.length < 2)
      return skipped(calls.length === 0 ? 'the model makes no call' : 'the model makes one call at a time')
    faults.push(...callFaults(answer.content).map((fault) => `${fault}${streamed(mode)}`))
    names = calls.map(({ name }) => name).join(', ')
  }
  return judged(faults, names)
}

async function checkGrammar(session: Session): Promise<CheckResult> {
  const answers = [
    await session.ask('text', { stream: true }),
    await session.ask('call', { stream: true }),
    await session.ask('parallel', { stream: true }),
    await session.ask('capped', { stream: true }),
  ].filter(isReply)
  if (answers.length === 0) return skipped('there is no stream to look at')
  const events = answers.reduce((sum, { exchange }) => sum + exchange.events.length, 0)
  const violations = answers.flatMap((answer) => answer.violations)
  return judged(violationNotes(violations), `${events} records in ${answers.length} streams`)
}

async function checkUtf8(session: Session): Promise<CheckResult> {
  let isRepeated = false
  for (const mode of both) {
    const answer = (await session.roundTrip(mode)) ?? (await session.ask('text', mode))
    if (!isReply(answer)) return skipped('there is no answer to look at')
    if (!answer.exchange.isUtf8)
      return failed(`bytes that are no UTF-8, or characters that were replaced${streamed(mode)}`)
    isRepeated ||= answer.content.text.includes(phrase)
  }
  return passed(isRepeated ? `"${phrase}" came back whole` : 'valid, though the model did not repeat the phrase')
}

async function checkBadRequest({ probe, endpoint, model }: Session): Promise<CheckResult> {
  return judgeError(probe, await endpoint.generate(probe.lacking(model)), { status: 400, what: 'no messages' })
}

async function checkBadKey({ probe, endpoint, model }: Session): Promise<CheckResult> {
  if (endpoint.apiKey === undefined) return skipped('no key was given, so none can be wrong')
  const body = probe.body({ model, turns: [{ said: 'hi' }], stream: false })
  return judgeError(probe, await endpoint.generate(body, 'sk-wrong-on-purpose'), { status: 401, what: 'a wrong key' })
}

/** Asked for as a stream: an error before the first event is no stream. */
async function checkBadModel({ probe, endpoint }: Session): Promise<CheckResult> {
  const body = probe.body({ model: 'no-such/model', turns: [{ said: 'hi' }], stream: true })
  return judgeError(probe, await endpoint.generate(body), { status: 404, what: 'an unknown model' })
}

type Result = Awaited<ReturnType<Session['endpoint']['generate']>>

function judgeError(
  { errorFaults }: Session['probe'],
  result: Result,
  { status, what }: { readonly status: number; readonly what: string },
): CheckResult {
  if (!isAnswered(result)) return failed(result.unanswered)
  if (result.status === 200) return failed(`${what} is answered with 200`)
  const faults = result.status === status ? [] : [`${what} is a ${result.status}, not a ${status}`]
  if (!result.contentType.startsWith('application/json'))
    faults.push(`the content type is ${result.contentType || 'missing'}`)
  faults.push(...errorFaults(result.json))
  const { message } = membersOf(membersOf(result.json).error)
  return judged(faults, `"${shortened(String(message))}"`)
}

function streamed({ stream }: { readonly stream: boolean }): string {
  return stream ? ' (streamed)' : ''
}
