// Runs a batch at its provider: holds the whole estimate, submits the lines as jobs there, waits for their results and runs each
// line with its own. A job is written down before it is sent, and looked for at the provider before it is sent again, so that
// it is submitted once; the row of a line decides that it is charged once (run-batch.ts).

import type { Clock } from '../kernel/clock.ts'
import type { Failpoint } from '../kernel/failpoint.ts'
import { assert, Failure } from '../kernel/failure.ts'
import { createId, type KeyId, type RequestId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { budgetsOf } from '../pipeline/budgets.ts'
import type { PreparedRequest, PrepareRequest } from '../pipeline/prepare-request.ts'
import type { RunRequest } from '../pipeline/run.ts'
import type { StoredResult } from '../pipeline/stored-result.ts'
import {
  type BatchApi,
  BatchApiFault,
  type BatchPlace,
  type JobResult,
  type JobStatus,
} from '../providers/batch-api/batch-api.ts'
import { batchApiOf } from '../providers/batch-api/registry.ts'
import type { BatchFiles } from '../tenancy/batch-files.ts'
import { dayMs } from '../tenancy/batch-files.ts'
import {
  type BatchJob,
  type BatchJobStore,
  type Claim,
  readLineNumbers,
  type Shares,
  writeLines,
} from '../tenancy/batch-jobs.ts'
import type { Batch, BatchOutcome, BatchStore } from '../tenancy/batches.ts'
import type { Caller } from '../tenancy/caller.ts'
import { type BatchKind, kindOf } from './kinds.ts'
import type { LineResult } from './line-keys.ts'
import { lineRequest, noConnection } from './line-request.ts'
import { type BatchLine, parseLine, readLines } from './read-lines.ts'

/** `handed over`: another process goes on with it. */
export type Stop = BatchOutcome | 'handed over'

export interface AtProviderDependencies {
  readonly jobs: BatchJobStore
  readonly ledger: Pick<Ledger, 'hold' | 'standing' | 'endStanding'>
  /** How lines are rendered for a provider, and run with its results. */
  at(providerId: string): {
    readonly prepare: Readonly<Record<BatchKind['operation'], PrepareRequest>>
    readonly run: Readonly<Record<BatchKind['operation'], RunRequest>>
  }
  /** undefined = the provider is no longer configured, or is called in another dialect. */
  placeOf(providerId: string, dialect: string): BatchPlace | undefined
  authenticate(keyId: KeyId): Promise<Caller | Failure>
  readonly reach: Failpoint
  /** For the log of the operator. */
  onNotice(message: string, facts: Readonly<Record<string, string | number | undefined>>): void
}

export interface ProviderRunDependencies {
  readonly store: Pick<BatchStore, 'findAny'>
  readonly files: Pick<BatchFiles, 'read'>
  readonly clock: Clock
  readonly atProvider: AtProviderDependencies
}

/** The batch as far as its lines are not run at the provider. */
export interface LineDesk {
  readonly batch: Batch
  readonly claim: Claim
  readonly stopped: Stop | undefined
  /** Aborted when another process goes on with it: calls to the provider must not keep this one alive. */
  readonly handedOver: AbortSignal
  waitsFor: Batch['waitsFor']
  stop(why: Stop): void
  refuseKey(message: string, line: number | null): void
  take(line: BatchLine, result: LineResult): Promise<void>
  notRun(line: BatchLine, outcome: 'cancelled' | 'expired'): void
  flush(): Promise<void>
}

/** Of one job, as it is sent: it is built in memory. */
const jobBytesMax = 32 * 2 ** 20
const jobLinesMax = 10_000
/** Between two looks at a job, at first and at most. */
const lookMinMs = 1_000
const lookMaxMs = 60_000
const lookFactor = 1.5
/** A submission whose outcome is unknown may still be on its way for so long. */
const settledMs = 30_000
/** After a job was cancelled, its provider finishes what it runs. */
const endingMaxMs = 60 * 60_000
/** A job that was not found so often in a row has disappeared. That takes some seconds, because what providers show may lag. */
const missingMax = 5
/** However long a provider asks to be left alone: its batch may end meanwhile. */
const retryAfterMaxMs = 10 * 60_000
/** Beyond the day of the batch: the time that it may take to end. */
const holdMarginMs = dayMs
const pollMs = 100
/** Results whose lines run or wait for a slot, and their bytes; one may have more. */
const takenMax = 32
const takenBytesMax = 16 * 2 ** 20

interface Sent {
  readonly line: BatchLine
  readonly request: PreparedRequest
}

interface Followed {
  readonly job: BatchJob
  readonly upstreamId: string
  nextMs: number
  waitMs: number
  missing: number
  cancelling: 'no' | 'wanted' | 'done'
}

export class ProviderRun {
  readonly #kind: BatchKind
  #jobs: BatchJob[] = []
  #shares: Shares = new Map()
  #holdId: RequestId = createId('req')
  #endingUntilMs: number | undefined
  #noticed = ''

  constructor(
    private readonly deps: ProviderRunDependencies,
    private readonly desk: LineDesk,
    /** Numbers of the lines that are final, or whose charge is on its way. */
    private readonly done: Set<number>,
  ) {
    this.#kind = kindOf(desk.batch.endpoint)
  }

  async run(): Promise<void> {
    const { desk } = this
    const { batch } = desk
    if (batch.outcome !== undefined) desk.stop(batch.outcome)
    const { jobs } = this.deps.atProvider
    const whole = await jobs.wholeHold(batch.id)
    assert(whole, 'a batch at a provider has a hold')
    this.#shares = whole.shares
    this.#jobs = [...(await jobs.list(batch.id))]
    await this.#hold(whole.model, whole.holdId)
    for (const job of this.#jobs) if (!job.endedAt && job.upstreamId === undefined) await this.#recover(job)
    await this.#submitAll()
    await this.#follow()
    if (this.#isHandedOver()) await this.#abandonErased()
  }

  // ── Money ──

  /** Until everything that is not final is held, or the batch is stopped. */
  async #hold(model: string, named: RequestId | undefined): Promise<void> {
    const { desk } = this
    const { ledger, jobs, authenticate } = this.deps.atProvider
    if (named) this.#holdId = named
    if (named && (await ledger.standing(named)) !== undefined) return
    let amount = 0n
    for (const [line, share] of this.#shares) if (!this.done.has(line)) amount += share
    let isNamed = false
    for (let waitMs = lookMinMs; ; waitMs = Math.min(lookMaxMs, waitMs * lookFactor)) {
      // What was sent before is settled in any case.
      if (desk.stopped) return
      const { batch, claim } = desk
      const { workspaceId, keyId, projectId } = batch
      const caller = await authenticate(keyId)
      if (caller instanceof Failure) {
        if (isRefusedKey(caller)) return desk.refuseKey(caller.message, null)
        await this.#pause(waitMs)
        continue
      }
      if (!isNamed) {
        this.#holdId = createId('req')
        if (!(await jobs.nameHold(claim, this.#holdId))) return desk.stop('handed over')
        isNamed = true
      }
      const outcome = await ledger.hold({
        ...{ requestId: this.#holdId, workspaceId, keyId, projectId, amount: amount as Nano, isStanding: true },
        budgets: budgetsOf(caller, this.deps.clock, {}, [{ id: model }]),
        lifetimeMs: dayMs + holdMarginMs,
      })
      if (outcome.kind === 'held') {
        desk.waitsFor = undefined
        return
      }
      // Its commit may still come, and would then hold under this name.
      if (outcome.kind === 'unavailable') isNamed = false
      else desk.waitsFor = outcome.kind === 'insufficient' ? 'balance' : 'limit'
      await this.#pause(waitMs)
    }
  }

  // ── Submitting ──

  async #submitAll(): Promise<void> {
    const planned = new Set(this.#jobs.flatMap(({ lines }) => [...readLineNumbers(lines)]))
    let sent: Sent[] = []
    let bytes = 0
    let name = ''
    for await (const line of this.#linesOf((number) => !planned.has(number) && !this.done.has(number))) {
      if (this.desk.stopped) return
      const request = await this.#prepare(line)
      if (!request) continue
      const { candidate, path, headers, body } = request
      const key = JSON.stringify([candidate.endpoint.dialect, path, headers])
      const max = Math.min(jobLinesMax, batchApiOf(candidate.endpoint)?.requestsMax ?? 0)
      if (sent.length > 0 && (key !== name || sent.length >= max || bytes + body.length > jobBytesMax)) {
        await this.#submit(sent)
        sent = []
        bytes = 0
      }
      name = key
      bytes += body.length
      sent.push({ line, request })
    }
    if (sent.length > 0 && !this.desk.stopped) await this.#submit(sent)
  }

  /** undefined = the line has ended, or the batch was stopped. */
  async #prepare(line: BatchLine): Promise<PreparedRequest | undefined> {
    const { batch } = this.desk
    const { provider = '' } = batch
    const { operation, surface, url } = this.#kind
    for (let waitMs = lookMinMs; ; waitMs = Math.min(lookMaxMs, waitMs * lookFactor)) {
      const facts = { batchId: batch.id, keyId: batch.keyId, lineKey: `${batch.id}:${line.line}`, body: line.body }
      const prepare = this.deps.atProvider.at(provider).prepare[operation]
      const prepared = await prepare(lineRequest(this.#kind, facts), surface, url, noConnection)
      if (!(prepared instanceof Failure)) return prepared
      if (isRefusedKey(prepared)) {
        this.desk.refuseKey(prepared.message, line.line)
        return undefined
      }
      if (prepared.status !== 503) {
        await this.#take(line, prepared)
        return undefined
      }
      await this.#pause(waitMs)
      if (this.desk.stopped) return undefined
    }
  }

  async #submit(sent: readonly Sent[]): Promise<void> {
    const { desk, deps } = this
    const { jobs } = deps.atProvider
    const [first] = sent
    assert(first, 'a job has lines')
    const { provider, endpoint } = first.request.candidate
    const job: BatchJob = {
      ...{ id: createId('job'), batchId: desk.batch.id, provider: provider.id, dialect: endpoint.dialect },
      ...{ lines: writeLines(sent.map(({ line }) => line.line)), createdAt: deps.clock.now() },
      ...{ upstreamId: undefined, endedAt: undefined },
    }
    if (!(await jobs.intend(desk.claim, job))) return desk.stop('handed over')
    this.#jobs.push(job)
    await deps.atProvider.reach('batch_intended')
    await this.#create(job, sent)
  }

  /** Sends it until the provider has it, or refuses it. */
  async #create(job: BatchJob, sent: readonly Sent[]): Promise<void> {
    const { desk, deps } = this
    const [first] = sent
    if (!first) return await this.#ended(job)
    const { path, headers } = first.request
    const requests = sent.map(({ line, request }) => ({ customId: `${job.id}-${line.line}`, body: request.body }))
    for (let waitMs = lookMinMs; ; waitMs = Math.min(lookMaxMs, waitMs * lookFactor)) {
      try {
        const { api, place } = this.#apiOf(job)
        const upstreamId = await api.create(place, { id: job.id, path, headers, requests })
        await deps.atProvider.reach('batch_created')
        return await this.#submitted(job, upstreamId)
      } catch (error) {
        const fault = this.#faultOf(job, error)
        if (fault.kind === 'refused') {
          const why = `Provider ${job.provider} refused the batch that this request was in: ${fault.message}.`
          for (const { line } of sent) await this.#take(line, unanswered(why))
          return await this.#ended(job)
        }
        const isUnknown = fault.status === undefined || fault.status >= 500
        await this.#pause(Math.max(waitOf(waitMs, fault), isUnknown ? settledMs : 0))
        if (this.#isHandedOver()) return
        if (isUnknown && (await this.#isFound(job))) return
        // Nothing is there, or it is not known yet: then the job stays as it is, and is looked for at its end.
        if (desk.stopped) return await this.#ended(job)
      }
    }
  }

  async #submitted(job: BatchJob, upstreamId: string): Promise<void> {
    const { desk, deps } = this
    if (!(await deps.atProvider.jobs.submitted(desk.claim, job.id, upstreamId))) return desk.stop('handed over')
    this.#jobs[this.#jobs.findIndex(({ id }) => id === job.id)] = { ...job, upstreamId }
    desk.waitsFor = undefined
  }

  /** A job whose process died before it knew what became of it. */
  async #recover(job: BatchJob): Promise<void> {
    const { desk, deps } = this
    // At most this long, also if the clock was set back.
    await this.#pause(Math.min(settledMs, job.createdAt + settledMs - deps.clock.now()), 'handed over')
    if (await this.#isFound(job)) return
    if (this.#isHandedOver()) return
    if (desk.stopped) return await this.#ended(job)
    const numbers = readLineNumbers(job.lines)
    const sent: Sent[] = []
    for await (const line of this.#linesOf((number) => numbers.has(number) && !this.done.has(number))) {
      const request = await this.#prepare(line)
      if (request) sent.push({ line, request })
    }
    if (this.#isHandedOver()) return
    if (desk.stopped) await this.#ended(job)
    else await this.#create(job, sent)
  }

  /** Whether the provider has it. Resolves when that is certain; false also if the batch is another process's now. */
  async #isFound(job: BatchJob): Promise<boolean> {
    const { jobs } = this.deps.atProvider
    const { id, createdAt } = job
    const requests = readLineNumbers(job.lines).size
    for (let waitMs = lookMinMs; !this.#isHandedOver(); waitMs = Math.min(lookMaxMs, waitMs * lookFactor)) {
      try {
        const { api, place } = this.#apiOf(job)
        const found = await api.find(place, { id, createdAt, requests, isKnown: jobs.knows })
        if (found === 'none') return false
        if (found !== 'undecided') {
          await this.#submitted(job, found.upstreamId)
          return true
        }
      } catch (error) {
        this.#faultOf(job, error)
      }
      if (this.#isPastEnding()) return false
      await this.#pause(waitMs, 'handed over')
    }
    return false
  }

  // ── Waiting for results ──

  /** Until every job has ended. */
  async #follow(): Promise<void> {
    const { desk, deps } = this
    const { clock } = deps
    const open = new Set(
      this.#jobs.flatMap((job): Followed[] => {
        const { upstreamId, endedAt } = job
        if (upstreamId === undefined || endedAt !== undefined) return []
        return [{ job, upstreamId, nextMs: 0, waitMs: lookMinMs, missing: 0, cancelling: 'no' }]
      }),
    )
    while (open.size > 0 && !this.#isHandedOver()) {
      for (const one of open) {
        if (this.#isHandedOver()) return
        if (desk.stopped && one.cancelling === 'no') {
          one.cancelling = 'wanted'
          one.nextMs = 0
          one.waitMs = lookMinMs
        }
        if (clock.monotonicMs() < one.nextMs) continue
        await this.#checkKey()
        if (one.cancelling === 'wanted') await this.#cancel(one)
        if (await this.#look(one)) open.delete(one)
        one.nextMs = clock.monotonicMs() + one.waitMs
        one.waitMs = Math.min(lookMaxMs, one.waitMs * lookFactor)
      }
      if (this.#isPastEnding()) {
        for (const { job } of open) this.#notice(job, 'a cancelled batch did not end; its lines are given up')
        return
      }
      if (open.size > 0) await Bun.sleep(pollMs)
    }
  }

  /** A key that was revoked stops its batches. */
  async #checkKey(): Promise<void> {
    const { desk, deps } = this
    if (desk.stopped) return
    const caller = await deps.atProvider.authenticate(desk.batch.keyId)
    if (caller instanceof Failure && isRefusedKey(caller)) desk.refuseKey(caller.message, null)
  }

  async #cancel(one: Followed): Promise<void> {
    try {
      const { api, place } = this.#apiOf(one.job)
      await api.cancel(place, one.upstreamId)
      one.cancelling = 'done'
    } catch (error) {
      const fault = this.#faultOf(one.job, error)
      // A batch that has ended meanwhile cannot be cancelled.
      if (fault.kind !== 'passing') one.cancelling = 'done'
      one.waitMs = waitOf(one.waitMs, fault)
    }
  }

  /** True = the job has ended and all its lines are final. */
  async #look(one: Followed): Promise<boolean> {
    const { job, upstreamId } = one
    try {
      const { api, place } = this.#apiOf(job)
      const status = await api.status(place, upstreamId)
      this.#noticed = ''
      if (this.desk.waitsFor === 'provider') this.desk.waitsFor = undefined
      if (status.end === undefined) {
        one.missing = 0
        return false
      }
      await this.#takeResults(job, status, api.results(place, status))
      if (this.#isHandedOver()) return false
      await api.remove(place, status).catch((error) => this.#faultOf(job, error))
      await this.#ended(job)
      return true
    } catch (error) {
      const fault = this.#faultOf(job, error)
      one.waitMs = waitOf(one.waitMs, fault)
      if (fault.kind !== 'missing' || ++one.missing < missingMax) return false
      const why = `Provider ${job.provider} no longer has the batch that this request was in, or its results.`
      await this.#takeAll(await this.#waitingOf(job), () => unanswered(why))
      await this.#ended(job)
      return true
    }
  }

  /** Runs each line with its result, and ends those that have none. */
  async #takeResults(job: BatchJob, status: JobStatus, results: AsyncIterable<JobResult>): Promise<void> {
    const { desk } = this
    const all = await this.#waitingOf(job)
    const numbers = readLineNumbers(job.lines)
    const waiting = new Map(all)
    const seen = new Set<number>()
    const running = new Set<Promise<void>>()
    let [unknown, repeated, bytes] = [0, 0, 0]
    try {
      for await (const { customId, outcome, status: code, body } of results) {
        if (this.#isHandedOver()) return
        const number = numberOf(customId, job.id)
        if (number === undefined || !numbers.has(number)) unknown++
        else if (seen.has(number)) repeated++
        else seen.add(number)
        const line = number === undefined ? undefined : waiting.get(number)
        if (!line) continue
        waiting.delete(line.line)
        if (outcome !== 'answered') {
          this.#notRun(line, desk.stopped === 'expired' ? 'expired' : outcome)
          continue
        }
        const taken = this.#take(line, { status: code, body }).finally(() => {
          running.delete(taken)
          bytes -= body.length
        })
        running.add(taken)
        bytes += body.length
        while (running.size >= takenMax || (bytes >= takenBytesMax && running.size > 0)) await Promise.race(running)
      }
    } finally {
      // Not left alone if one of them, or the file, fails.
      await Promise.allSettled(running)
    }
    await Promise.all(running)
    if (this.#isHandedOver()) return
    if (unknown + repeated > 0) {
      const facts = { batch_id: desk.batch.id, provider: job.provider, unreadable_or_unknown: unknown, repeated }
      this.deps.atProvider.onNotice("a provider's batch has results that belong to no line; they were left out", facts)
    }
    await this.#endRest(job, status, waiting)
    await desk.flush()
  }

  /** Lines that the provider has not answered. */
  async #endRest({ provider }: BatchJob, { end, why }: JobStatus, rest: ReadonlyMap<number, BatchLine>): Promise<void> {
    const { desk } = this
    if (desk.stopped === undefined && (end === 'expired' || end === 'cancelled')) desk.stop(end)
    if (rest.size === 0) return
    if (desk.stopped !== undefined) {
      for (const line of rest.values()) this.#notRun(line, desk.stopped === 'expired' ? 'expired' : 'cancelled')
      return
    }
    const said = why === undefined ? '' : ` (${why.slice(0, 100)})`
    const text =
      end === 'failed'
        ? `Provider ${provider} could not run the batch that this request was in${said}.`
        : `Provider ${provider} returned no readable result for this request.`
    await this.#takeAll(rest, () => unanswered(text))
  }

  async #takeAll(lines: ReadonlyMap<number, BatchLine>, resultOf: () => StoredResult): Promise<void> {
    for (const line of lines.values()) {
      if (this.#isHandedOver()) return
      await this.#take(line, resultOf())
    }
    await this.desk.flush()
  }

  async #take(line: BatchLine, stored: StoredResult): Promise<void> {
    const share = this.#shares.get(line.line) ?? zeroNano
    await this.desk.take(line, { stored, holdId: this.#holdId, share, isTaken: false })
    this.done.add(line.line)
  }

  #notRun(line: BatchLine, outcome: 'cancelled' | 'expired'): void {
    this.desk.notRun(line, outcome)
    this.done.add(line.line)
  }

  async #ended(job: BatchJob): Promise<void> {
    await this.desk.flush()
    const { jobs } = this.deps.atProvider
    if (!(await jobs.ended(this.desk.claim, job.id, this.deps.clock.now()))) this.desk.stop('handed over')
  }

  /** A batch that was erased with its workspace while it ran: nobody else goes on with it. */
  async #abandonErased(): Promise<void> {
    const { store, atProvider } = this.deps
    const { batch } = this.desk
    if (await store.findAny(batch.id)) return
    for (const job of this.#jobs) {
      if (job.upstreamId === undefined || job.endedAt !== undefined) continue
      try {
        const { api, place: open } = this.#apiOf(job)
        const place = { ...open, signal: undefined }
        const status = await api.status(place, job.upstreamId)
        if (status.end === undefined) await api.cancel(place, job.upstreamId)
        await api.remove(place, status)
      } catch (error) {
        if (!(error instanceof BatchApiFault)) throw error
        this.#notice(job, `the batch of an erased workspace could not be deleted at its provider: ${error.message}`)
      }
    }
    await atProvider.ledger.endStanding(this.#holdId, batch.workspaceId)
  }

  // ── Parts ──

  async *#linesOf(isWanted: (number: number) => boolean): AsyncGenerator<BatchLine> {
    const { batch } = this.desk
    const input = { id: batch.inputFileId, workspaceId: batch.workspaceId }
    for await (const raw of readLines(this.deps.files.read(input))) {
      if (!isWanted(raw.line)) continue
      const parsed = parseLine(raw, batch.endpoint)
      // All were checked when the batch was created.
      if ('code' in parsed) throw new Error(`line ${raw.line} of ${batch.id} cannot be read: ${parsed.message}`)
      yield parsed
    }
  }

  /** The lines of a job that are not final. */
  async #waitingOf(job: BatchJob): Promise<ReadonlyMap<number, BatchLine>> {
    const numbers = readLineNumbers(job.lines)
    const lines = new Map<number, BatchLine>()
    for await (const line of this.#linesOf((number) => numbers.has(number) && !this.done.has(number)))
      lines.set(line.line, line)
    return lines
  }

  #apiOf({ provider, dialect }: BatchJob): { readonly api: BatchApi; readonly place: BatchPlace } {
    const found = this.deps.atProvider.placeOf(provider, dialect)
    const api = found && batchApiOf(found.endpoint)
    if (!api) throw new BatchApiFault('passing', 'it is no longer configured')
    return { api, place: { ...found, signal: this.desk.handedOver } }
  }

  /** Throws what is no fault of the provider. Says it in the log, once for each kind in a row. */
  #faultOf(job: BatchJob, error: unknown): BatchApiFault {
    if (!(error instanceof BatchApiFault)) throw error
    if (this.#isHandedOver()) return error
    if (error.kind === 'passing') this.desk.waitsFor = 'provider'
    this.#notice(job, `the batches of a provider cannot be used now: ${error.message}`)
    return error
  }

  #notice({ provider, id, upstreamId }: BatchJob, message: string): void {
    if (this.#noticed === message) return
    this.#noticed = message
    const facts = { batch_id: this.desk.batch.id, provider, job_id: id, upstream_id: upstreamId }
    this.deps.atProvider.onNotice(message, facts)
  }

  /** `until`: what ends the wait early. */
  async #pause(milliseconds: number, until: 'stopped' | 'handed over' = 'stopped'): Promise<void> {
    const { clock } = this.deps
    const endMs = clock.monotonicMs() + milliseconds
    const isOver = () => (until === 'stopped' ? this.desk.stopped !== undefined : this.#isHandedOver())
    while (!isOver() && clock.monotonicMs() < endMs) await Bun.sleep(pollMs)
  }

  #isHandedOver(): boolean {
    return this.desk.stopped === 'handed over'
  }

  #isPastEnding(): boolean {
    if (this.desk.stopped === undefined) return false
    this.#endingUntilMs ??= this.deps.clock.monotonicMs() + endingMaxMs
    return this.deps.clock.monotonicMs() >= this.#endingUntilMs
  }
}

/** Until a call is made again that a provider has refused for now. */
function waitOf(usualMs: number, { retryAfterMs = 0 }: BatchApiFault): number {
  return Math.max(usualMs, Math.min(retryAfterMs, retryAfterMaxMs))
}

function isRefusedKey({ status }: Failure): boolean {
  return status === 401 || status === 403
}

function unanswered(message: string): Failure {
  return new Failure('UNAVAILABLE', `${message} Nothing was charged. Send it again in a new batch.`, {
    shouldRetry: false,
  })
}

/** Of one of our ids. */
function numberOf(customId: string | undefined, jobId: string): number | undefined {
  const text = customId?.startsWith(`${jobId}-`) ? customId.slice(jobId.length + 1) : ''
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined
}
