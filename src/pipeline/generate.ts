// The story of one generation, told once for both surfaces, streamed or not. Each step may end it with a failure in the
// caller's dialect; whatever happens, the request is recorded exactly once.

import type { Warning } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Candidate } from '../routing/candidate.ts'
import { describeFault, Exhausted, exhaustedFailure } from '../routing/exhausted.ts'
import { type AttemptOptions, type TryDependencies, tryCandidates } from '../routing/failover.ts'
import type { Health } from '../routing/health/health.ts'
import type { RetryBudget } from '../routing/health/retry-budget.ts'
import type { StickyRoutes } from '../routing/health/sticky.ts'
import type { GenerationKeys } from '../tenancy/idempotency.ts'
import { type AdmitDependencies, type Admitted, admit, type EstimateTokens } from './admit.ts'
import { type AnswerHeaders, failureResponse, requestIdHeaders, streamHeaders } from './answer-headers.ts'
import { answerStream } from './answer-stream.ts'
import { type Answered, createAttempt, isAnswered, type OpenStream, type WholeReply } from './attempt.ts'
import { noteInterrupted } from './attempt-note.ts'
import type { Bill } from './bill.ts'
import { Call, type Measured } from './call.ts'
import type { Connection } from './connection.ts'
import { before, earlyHeadersMs, patienceMs } from './early-headers.ts'
import { estimateAllTokens, type HoldDependencies, hold } from './hold.ts'
import { type ClaimedKey, claimKey, replayHeaders } from './idempotent.ts'
import { createImplausibleWarnings, type WarnImplausible } from './judge-usage.ts'
import { warningsHeader } from './lane.ts'
import type { Owed } from './owed.ts'
import { pauseBetweenAttempts } from './patience.ts'
import type { End, Opened } from './pump.ts'
import { gone, type Settled, Story, type StoryDependencies } from './story.ts'
import type { Ticker } from './ticker.ts'

export interface GenerateDependencies extends AdmitDependencies, StoryDependencies, HoldDependencies, TryDependencies {
  readonly health: Health
  readonly budget: RetryBudget
  readonly sticky: StickyRoutes
  readonly ticker: Ticker
  readonly reach: Failpoint
  /** Closed before the ledger. */
  readonly owed: Owed
  readonly idempotencyKeys: GenerationKeys
  /** Counts the answers that are on their way. */
  readonly streams: { opened(): void; closed(): void }
  /** What the caller is told of a defect of ours; the details go to the log, under the same id. */
  onDefect(error: unknown, id: RequestId): Failure
}

export type Generate = (request: Request, surface: Dialect, path: string, connection: Connection) => Promise<Response>

export function createGenerate(deps: GenerateDependencies): Generate {
  const { clock, ticker } = deps
  const settling = { ...deps, warnImplausible: createImplausibleWarnings(deps) }
  const attempt = createAttempt(deps)

  return async (request, surface, path, connection) => {
    const story = new Story(deps, surface, path, connection)
    if (deps.beginTrace) story.record.trace = deps.beginTrace(request.headers.get('traceparent'))
    try {
      // 1 authenticate · 2 read the body · 3 envelope · 4 limits · 5 plan
      const estimate: EstimateTokens = (envelope, model) => estimateAllTokens(surface, envelope, model, deps.ratios)
      const admitted = await admit(deps, request, story, surface.readEnvelope, estimate)
      if (admitted instanceof Failure) return story.refuse(admitted, request.signal)

      // The same request again gets the first one's answer and is not paid for.
      const call = new Call(request, admitted, story)
      const key = request.headers.get('idempotency-key')
      const claimed = key === null ? undefined : await claim(call, key)
      if (claimed instanceof Response) return claimed

      // 6 hold: what it may cost is set aside before anything is sent
      const holding = hold(deps, call, admitted)
      const bill = holding instanceof Promise ? await holding : holding
      if (bill instanceof Failure) return story.refuse(bill, request.signal)
      story.bill = bill
      call.outputCapMost = bill.loweredCap
      const overtaken = claimed && (await claimed.confirm())
      if (overtaken) return story.refuse(overtaken, request.signal)
      // Nothing has been sent yet, so a client that left during the hold costs nobody anything.
      if (call.clientGone.aborted) return story.abandon()

      // 7 failover: each candidate in turn, until one is committed
      const trying = tryCandidates(deps, {
        plan: admitted.plan,
        streams: call.envelope.stream,
        // The tools of a request may be run by the provider itself: never twice.
        mayHedge: call.model.hedge && call.envelope.stream && !call.envelope.offersTools && !isMixed(admitted.plan),
        // A stream is kept alive for as long as it takes; a whole answer has to come while the client waits.
        patienceMs: call.envelope.stream ? undefined : patienceMs(request.headers),
        attempt: (candidate, options) => tryOne(candidate, call, options),
        pause: (milliseconds) => pause(milliseconds, call),
        discard: (answer) => (answer.kind === 'stream' ? answer.abort() : undefined),
        isAnswer: isAnswered,
        isWanted: () => !call.clientGone.aborted,
      })

      // 8 answer · 9 settle, with the request record
      if (!call.envelope.stream) return await answerWhole(concluded(await trying, call), call)
      const opening = trying.then((outcome) => concluded(outcome, call))
      const opened = await before(clock.monotonicMs() + earlyHeadersMs(request.headers), opening, ticker)
      return await answerStreamed(opened === 'not yet' ? opening : opened, call)
    } catch (error) {
      return story.refuse(deps.onDefect(error, story.record.id))
    }
  }

  async function claim(call: Call, key: string): Promise<ClaimedKey | Response> {
    const { story } = call
    const claim = await claimKey(deps.idempotencyKeys, call, key)
    if (claim instanceof Failure) return story.refuse(claim)
    if ('kept' in claim) {
      story.kept = claim.kept
      return claim
    }
    story.record.notes.push('replayed by its idempotency key')
    story.conclude()
    return new Response(claim.body, { headers: replayHeaders(requestIdHeaders(story.record.id)) })
  }

  async function tryOne(candidate: Candidate, call: Call, options: AttemptOptions) {
    const { story } = call
    const note = story.beginAttempt(candidate)
    story.bill?.serveBy(candidate)
    story.bill?.markSent()
    const result = await attempt(call, candidate, options)
    if (isAnswered(result)) note.end(options.lost?.aborted ? 'superseded' : 'ok')
    else if (result.failure) note.remove()
    else note.end(describeFault(result))
    return result
  }

  async function pause(milliseconds: number, call: Call) {
    const startedMs = clock.monotonicMs()
    const ended = await pauseBetweenAttempts(milliseconds, call, ticker)
    // Waiting for a provider to recover is none of the gateway's own work.
    call.story.record.waitedMs += clock.monotonicMs() - startedMs
    return ended
  }

  async function answerWhole(opened: Opened, call: Call): Promise<Response> {
    const ended = await endedEarly(opened, call)
    if (ended) return ended
    const { story } = call
    const reply = opened as WholeReply
    const headers = story.headers()
    addWarnings(headers, reply, story)
    story.keptAnswer = reply.body
    const measured = { usage: reply.usage, usageSoFar: undefined, outputBytes: 0, countedBytes: undefined }
    const { unsettled } = await settle(settling, call, { ending: 'complete' }, measured)
    if (unsettled) return failureResponse(story.surface, unsettled, headers, story.record.id)
    headers['content-type'] = 'application/json'
    if (story.record.costUsd !== undefined) headers['x-tollgate-cost'] = story.record.costUsd
    if (reply.usage.source === 'estimated') headers['x-tollgate-usage'] = 'estimated'
    return new Response(reply.body, { headers })
  }

  async function answerStreamed(opened: Opened | Promise<Opened>, call: Call): Promise<Response> {
    const { story, surface } = call
    const headers = streamHeaders(story.headers())
    if (!(opened instanceof Promise)) {
      const ended = await endedEarly(opened, call)
      if (ended) return ended
      addWarnings(headers, opened as OpenStream, story)
    }
    deps.streams.opened()
    const body = answerStream({
      surface,
      requestId: story.record.id,
      opening: opened as OpenStream | Promise<Opened>,
      ticker,
      connection: story.connection,
      onDefect: (error) => deps.onDefect(error, story.record.id),
      bill: story.bill,
      reach: deps.reach,
      owed: deps.owed,
      tokensOf: (relay) => call.usageSoFar(relay).outputTokens,
      async settle(end, relay) {
        deps.streams.closed()
        try {
          return await settle(settling, call, end, relay)
        } catch (error) {
          // Nobody else ends the story of a stream, and its client must hear of an end.
          return { unsettled: story.fail(deps.onDefect(error, story.record.id)) }
        }
      },
    })
    return new Response(body, { headers })
  }
}

/** Own and shared routes differ in who pays: what they are asked at the same time would be priced by the wrong one. */
function isMixed({ ordered }: Admitted['plan']): boolean {
  return ordered.some(({ isOwn }) => isOwn !== ordered[0]?.isOwn)
}

/** What the tries came to, as the caller will learn it. */
function concluded(outcome: Answered | Exhausted, call: Call): Opened {
  const { story, model } = call
  if (outcome instanceof Exhausted) return outcome.clientLeft ? 'client left' : exhaustedFailure(model.id, outcome)
  if (outcome.kind === 'stream') call.letGo(outcome.relay)
  story.noteServed(outcome.candidate)
  story.record.lane = outcome.lane
  const warnings = allWarnings(outcome, story)
  if (warnings.length > 0) story.record.warnings = warnings.map(({ code, field }) => `${code} ${field}`)
  return outcome
}

interface SettleDependencies {
  readonly warnImplausible: WarnImplausible
}

/** The one end of a request that was held for: what it used is learned from, charged and recorded. */
function settle(
  { ratios, health, sticky, clock, warnImplausible }: GenerateDependencies & SettleDependencies,
  call: Call,
  { ending, failure, why }: End,
  measured: Measured | undefined,
): Promise<Settled> {
  const { story, model, envelope, conversationKey: conversation } = call
  const { candidate, answeredMs } = story
  const usage = measured?.usage
  if (why !== undefined) noteInterrupted(story.record, why)
  const counted = measured && call.reportedInput(measured)
  // What a workspace's own endpoint counts must not set the holds of others.
  if (counted && !candidate?.isOwn) ratios.learn(model.id, call.bodyBytes, counted, call.mayHaveMedia)
  if (candidate && answeredMs !== undefined) {
    const { isRehearsal } = candidate.provider
    // One that rehearses breaks off on purpose, every time.
    if (why !== undefined && !isRehearsal) health.noteInterrupted(candidate.key, answeredMs, why)
    else if (usage && envelope.stream)
      health.noteSpeed(candidate.key, usage.outputTokens, clock.monotonicMs() - answeredMs)
    if (usage && conversation !== undefined) {
      sticky.remember(conversation, candidate.key, usage.cacheWriteLongTokens > 0 ? 'long' : 'short')
    }
  }
  const settled = story.settle(ending, failure, call.settlementFacts(measured))
  if (candidate) warnImplausible(story.record, candidate)
  return settled
}

async function endedEarly(opened: Opened, call: Call): Promise<Response | undefined> {
  const { story } = call
  if (opened instanceof Failure) return story.refuse(opened)
  if (opened !== 'client left') return undefined
  await story.settle('client left before content', undefined, call.settlementFacts(undefined))
  return gone()
}

function addWarnings(headers: AnswerHeaders, answer: Answered, story: Story): void {
  const warnings = allWarnings(answer, story)
  if (warnings.length > 0) headers['x-tollgate-warnings'] = warningsHeader(warnings)
}

function allWarnings({ warnings }: Answered, { bill }: Story): readonly Warning[] {
  const lowered = bill && loweredCapWarning(bill)
  return lowered === undefined ? warnings : [lowered, ...warnings]
}

/** The wallet, or a spend limit, has room for this much of an answer and no more. */
function loweredCapWarning({ loweredCap, slice }: Bill): Warning | undefined {
  if (loweredCap === undefined) return undefined
  return { code: `max_tokens_lowered_by_${slice.within ?? 'balance'}=${loweredCap}`, field: '/max_tokens' }
}
