// What earlier requests tell about the next one, so that little is held where little is left: how many tokens a session's
// previous prompt had and how many of them are cached, and how much a caller's answers usually have. It is kept in memory and
// may be lost at any time; holds are then placed by the size of the body and by whole steps.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId } from '../kernel/ids.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'

/** The least recently used are forgotten. */
class Recent<Value> {
  readonly #values = new Map<string, Value>()

  constructor(private readonly max: number) {}

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  keep(key: string, value: Value): void {
    this.#values.delete(key)
    this.#values.set(key, value)
    if (this.#values.size <= this.max) return
    for (const oldest of this.#values.keys()) {
      this.#values.delete(oldest)
      return
    }
  }
}

// ── Previous turns ──

export interface Turn {
  /** Of the body, and of what was added to it. */
  readonly promptBytes: number
  readonly inputTokens: number
  /** Read from or written to a cache. The next turn reads them if it comes in time. */
  readonly cachedTokens: number
  readonly cachedUntilMs: number
}

/** What a prompt probably has, by the turn before it. */
export interface ExpectedInput {
  readonly inputTokens: number
  readonly cachedTokens: number
  /** What it was read from, which is given back if the request is not sent. */
  readonly turn: Turn
}

/** A few hundred bytes each: some megabytes at most. */
const sessionsMax = 10_000
/** Agents run others under their own session, each with its own prompt. */
const turnsMax = 4
/** How long providers keep a prompt cache after its last use. */
const shortCacheMs = 300_000
const longCacheMs = 3_600_000
/** Providers that cache by themselves cache whole blocks. */
const cachedShare = 0.98

export class PreviousTurns {
  readonly #bySession = new Recent<readonly Turn[]>(sessionsMax)

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /**
   * Takes the turn, so that only one request counts on its cache: a caller could otherwise send many prompts at once that it says
   * continue it. `session`: identifies workspace, model and session. `tokensPerByte`: of text that was added since, at least.
   */
  take(session: string, promptBytes: number, tokensPerByte: number): ExpectedInput | undefined {
    const turns = this.#bySession.get(session) ?? []
    const turn = before(turns, promptBytes)
    if (!turn) return undefined
    const others = turns.filter((one) => one !== turn)
    this.#bySession.keep(session, others)
    const perByte = Math.max(tokensPerByte, turn.inputTokens / turn.promptBytes)
    const isCached = this.clock.monotonicMs() < turn.cachedUntilMs
    return {
      inputTokens: turn.inputTokens + Math.ceil((promptBytes - turn.promptBytes) * perByte),
      cachedTokens: isCached ? Math.floor(turn.cachedTokens * cachedShare) : 0,
      turn,
    }
  }

  giveBack(session: string, turn: Turn): void {
    this.#bySession.keep(session, [...(this.#bySession.get(session) ?? []), turn].slice(-turnsMax))
  }

  learn(session: string, promptBytes: number, usage: Usage): void {
    if (promptBytes === 0) return
    const turns = this.#bySession.get(session) ?? []
    const previous = before(turns, promptBytes)
    const { cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens } = usage
    const cachedTokens = cacheReadTokens + cacheWriteTokens + cacheWriteLongTokens
    const cacheMs = cacheWriteLongTokens > 0 ? longCacheMs : shortCacheMs
    const nowMs = this.clock.monotonicMs()
    const turn = { promptBytes, inputTokens: totalInputTokens(usage), cachedTokens, cachedUntilMs: nowMs + cacheMs }
    const others = turns.filter((one) => one !== previous)
    this.#bySession.keep(session, [...others, turn].slice(-turnsMax))
  }
}

/** The turn that a prompt probably continues: the longest one that is not longer. */
function before(turns: readonly Turn[] = [], promptBytes: number): Turn | undefined {
  let found: Turn | undefined
  for (const turn of turns) {
    if (turn.promptBytes <= promptBytes && turn.promptBytes >= (found?.promptBytes ?? 0)) found = turn
  }
  return found
}

// ── Usual answers ──

const callersMax = 10_000
/** The largest of so many answers is about their 95th percentile. */
const answersMax = 20
/** For answers that are longer than those before. */
const marginFactor = 1.5

export class UsualOutputs {
  readonly #byCaller = new Recent<number[]>(callersMax)

  /** The tokens with which an answer usually ends by itself; undefined = the caller has got none from this model. */
  of(keyId: KeyId, modelId: string): number | undefined {
    const answers = this.#byCaller.get(`${keyId} ${modelId}`)
    return answers && Math.ceil(Math.max(...answers) * marginFactor)
  }

  /** `outputTokens`: of one choice. */
  learn(keyId: KeyId, modelId: string, outputTokens: number): void {
    const caller = `${keyId} ${modelId}`
    const answers = this.#byCaller.get(caller) ?? []
    answers.push(outputTokens)
    if (answers.length > answersMax) answers.shift()
    this.#byCaller.keep(caller, answers)
  }
}
