// Asks one endpoint in one dialect a few questions. Each answer is requested once, however many checks use it: each
// may cost money.

import { answered, shortened } from './check-result.ts'
import { type Endpoint, type Exchange, isAnswered, type Unanswered } from './endpoint.ts'
import type { Probe, ProbeTurn, Question } from './probe.ts'
import type { ReplyContent } from './reply-content.ts'
import type { Violation } from './violation.ts'

/** A reply as it was read, or why there is none. */
export type Answer =
  | {
      readonly content: ReplyContent
      readonly violations: readonly Violation[]
      readonly exchange: Exchange
      /** A call was demanded, after the model had made none by itself. */
      readonly demanded?: true
    }
  | { readonly faults: readonly string[]; readonly status: number | undefined }

export function isReply(answer: Answer): answer is Extract<Answer, { content: ReplyContent }> {
  return 'content' in answer
}

const weather = {
  name: 'get_weather',
  description: 'The present weather of a city.',
  argument: 'city',
} as const
const time = { name: 'get_time', description: 'The present time in a city.', argument: 'city' } as const

/** The result of a tool in the round trip; characters of one to four bytes. */
export const phrase = 'sunny, 23 °C, Grüezi — 晴れ 🎉'

const questions = {
  text: { turns: [{ said: 'Say hello in one short sentence.' }] },
  capped: { turns: [{ said: 'Count from one to one hundred in words.' }], cap: 5 },
  call: { turns: [{ said: 'What is the weather in Zürich? Use the tool.' }], tools: [weather] },
  parallel: {
    turns: [{ said: 'Call both tools at once, in parallel: the weather and the time in Zürich.' }],
    tools: [weather, time],
  },
} as const satisfies Record<string, Omit<Question, 'model' | 'stream'>>

export type QuestionName = keyof typeof questions

export class Session {
  readonly #answers = new Map<string, Promise<Answer>>()

  constructor(
    readonly probe: Probe,
    readonly endpoint: Endpoint,
    readonly model: string,
  ) {}

  ask(name: QuestionName, { stream }: { readonly stream: boolean }): Promise<Answer> {
    return this.#once(`${name} ${stream}`, async () => {
      const question: Question = { model: this.model, stream, ...questions[name] }
      const answer = await this.#put(question)
      // A model may answer without a call that was not required.
      const mustCall = question.tools !== undefined && isReply(answer) && answer.content.calls.length === 0
      if (!mustCall) return answer
      const demanded = await this.#put({ ...question, mustCall })
      return isReply(demanded) ? { ...demanded, demanded: true } : answer
    })
  }

  /** The answer to the results of the tool call; undefined if there was no call. */
  async roundTrip({ stream }: { readonly stream: boolean }): Promise<Answer | undefined> {
    const first = await this.ask('call', { stream: false })
    if (!isReply(first) || first.content.calls.length === 0) return undefined
    return this.#once(`round trip ${stream}`, () => {
      const results = first.content.calls.map(() => phrase)
      const turns: ProbeTurn[] = [...questions.call.turns, { answer: first.content, results }]
      return this.#put({ model: this.model, turns, tools: questions.call.tools, stream })
    })
  }

  #once(key: string, run: () => Promise<Answer>): Promise<Answer> {
    const known = this.#answers.get(key) ?? run()
    this.#answers.set(key, known)
    return known
  }

  async #put(question: Question): Promise<Answer> {
    const body = this.probe.body(question)
    const result = await this.endpoint.generate(body)
    const older = isAnswered(result) && result.status === 400 ? this.probe.olderCap(body) : undefined
    return this.#read(older ? await this.endpoint.generate(older) : result, question)
  }

  #read(result: Exchange | Unanswered, { stream }: Question): Answer {
    const { probe } = this
    if (!isAnswered(result)) return { faults: [result.unanswered], status: undefined }
    const { status, contentType, json, events } = result
    if (status !== 200) return { faults: [answered(result)], status }
    if (stream) {
      if (!contentType.startsWith('text/event-stream')) {
        return { faults: [`a stream was asked for, but the content type is ${contentType || 'missing'}`], status }
      }
      const content = probe.readStream(events)
      if (content.error) {
        const said = shortened(String(content.error.message ?? content.error.code))
        return { faults: [`the stream ends with an error: ${said}`], status }
      }
      return { content, violations: probe.checkStream(events), exchange: result }
    }
    if (!contentType.startsWith('application/json') || json === undefined) {
      return { faults: [`the body is no JSON (content type ${contentType || 'missing'})`], status }
    }
    return { content: probe.readWhole(json), violations: probe.checkWhole(json), exchange: result }
  }
}
