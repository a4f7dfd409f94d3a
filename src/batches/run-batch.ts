// Runs the lines of one batch that this process has claimed, and ends the batch. A line that is refused for now is tried again:
// what the wallet or a limit refuses makes the whole batch wait, what no provider answers waits by itself.

import { type NewAlert, type Raising, raiseAlert } from '../alerts/alerts.ts'
import type { Clock } from '../kernel/clock.ts'
import { createId, type RequestId } from '../kernel/ids.ts'
import { formatUsd, parseUsd, zeroNano } from '../kernel/money.ts'
import type { Answer } from '../pipeline/answer.ts'
import type { RunRequest } from '../pipeline/run.ts'
import { type BatchFiles, dayMs, expireInput, insertResultFile } from '../tenancy/batch-files.ts'
import type { Claim } from '../tenancy/batch-jobs.ts'
import {
  type Batch,
  type BatchError,
  type BatchStore,
  type KeptLine,
  type LineFigures,
  type LineOutcome,
  type NewLine,
  statusOf,
} from '../tenancy/batches.ts'
import { type BatchKind, kindOf } from './kinds.ts'
import type { LineKeys, LineResult, RunningLine } from './line-keys.ts'
import { lineRequest, noConnection } from './line-request.ts'
import { LineWriter } from './line-writer.ts'
import { type AtProviderDependencies, type LineDesk, ProviderRun, type Stop } from './provider-run.ts'
import { type BatchLine, parseLine, readLines } from './read-lines.ts'
import { renderLine } from './render-line.ts'
import type { Slots } from './slots.ts'

export interface RunBatchDependencies {
  readonly store: BatchStore
  readonly files: BatchFiles
  readonly lineKeys: LineKeys
  readonly slots: Slots
  readonly clock: Clock
  /** Who is told that a batch has ended. */
  raising(): Raising
  /** By the operation of the line. */
  readonly run: Readonly<Record<BatchKind['operation'], RunRequest>>
  readonly atProvider: AtProviderDependencies
}

/** How often a line is tried that no provider answers, and how long it waits before each. */
const retryMs = [1_000, 4_000, 15_000, 60_000, 60_000]
/** The whole batch waits at least and at most this long for its wallet or a limit. */
const pauseMinMs = 500
const pauseMaxMs = 30_000
/** Lines in memory that wait for another try. */
const delayedMax = 200
/** How long a result waits whose charge could not be made. */
const chargeRetryMs = 1_000
const pollMs = 100

export class BatchRun implements LineDesk {
  /** Resolves when this process is done with it. */
  readonly done: Promise<void>
  waitsFor: Batch['waitsFor']
  readonly #kind: BatchKind
  readonly #writer: LineWriter
  readonly #errors: BatchError[] = []
  #stop: Stop | undefined
  readonly #handedOver = new AbortController()
  #pausedUntilMs = 0
  #delayed = 0
  /** Lines that have a slot. */
  #running = 0
  readonly #lines = new Set<Promise<void>>()

  constructor(
    private readonly deps: RunBatchDependencies,
    public batch: Batch,
    readonly claim: Claim,
  ) {
    this.#kind = kindOf(batch.endpoint)
    this.#writer = new LineWriter(deps.store, batch.id, () => this.#running)
    this.done = this.#run()
  }

  get stopped(): Stop | undefined {
    return this.#stop
  }

  get handedOver(): AbortSignal {
    return this.#handedOver.signal
  }

  /** No further line is started. Keeps the first reason, unless another process goes on with it: that one ends it too. */
  stop(why: Stop): void {
    if (why === 'handed over') this.#handedOver.abort()
    if (why === 'handed over' || this.#stop === undefined) this.#stop = why
  }

  /** Writes what is final, so that others see the progress. */
  flush(): Promise<void> {
    return this.#writer.flush()
  }

  async #run(): Promise<void> {
    const { store } = this.deps
    if (this.batch.state === 'running')
      await (this.batch.provider === undefined ? this.#runLines() : this.#runAtProvider())
    await Promise.all(this.#lines)
    await this.#writer.flush()
    if (this.#stop === 'handed over') return await store.giveUp(this.claim)
    await this.#end()
  }

  // ── Lines ──

  async #runLines(): Promise<void> {
    const { store, files } = this.deps
    const { lines, kept } = await store.answered(this.batch.id)
    for (const line of await this.#resolve(kept)) lines.delete(line)
    if (lines.size === this.batch.total) return
    const input = { id: this.batch.inputFileId, workspaceId: this.batch.workspaceId }
    for await (const raw of readLines(files.read(input))) {
      if (lines.has(raw.line)) continue
      const parsed = parseLine(raw, this.batch.endpoint)
      // All were checked when the batch was created.
      if ('code' in parsed) throw new Error(`line ${raw.line} of ${this.batch.id} cannot be read: ${parsed.message}`)
      while (this.#delayed >= delayedMax && !this.#stop) await Bun.sleep(pollMs)
      if (!(await this.#begin(parsed, 0))) return
    }
    while (this.#lines.size > 0) await Promise.all(this.#lines)
  }

  async #runAtProvider(): Promise<void> {
    const { lines, kept } = await this.deps.store.answered(this.batch.id)
    for (const line of await this.#resolve(kept)) lines.delete(line)
    await new ProviderRun(this.deps, this, lines).run()
  }

  /** Runs a line with what its provider has answered, until that is final or the batch is another process's. */
  async take(line: BatchLine, result: LineResult): Promise<void> {
    const { slots } = this.deps
    for (let againMs: number | undefined = 0; againMs !== undefined && this.#stop !== 'handed over'; ) {
      await Bun.sleep(againMs)
      await slots.take()
      this.#running++
      againMs = await this.#runLine(line, retryMs.length, { ...result, isTaken: false }).finally(() => {
        this.#running--
        slots.release()
      })
    }
  }

  /** Ends a line that its provider has not run. */
  notRun(line: BatchLine, outcome: 'cancelled' | 'expired'): void {
    this.#writer.uncharged(this.#answered(line, outcome, undefined))
  }

  /** No request of the batch is made any more with its key. */
  refuseKey(message: string, line: number | null): void {
    this.#errors.push({ code: 'key_refused', message, line, param: null })
    this.stop('key_refused')
  }

  /** Starts a line when there is room. False = the batch was stopped. */
  async #begin(line: BatchLine, tries: number): Promise<boolean> {
    const { slots, clock } = this.deps
    while (!this.#stop && clock.monotonicMs() < this.#pausedUntilMs) await Bun.sleep(pollMs)
    if (this.#stop) return false
    await slots.take()
    if (this.#stop) {
      slots.release()
      return false
    }
    this.#running++
    const running = this.#runLine(line, tries)
      .finally(() => {
        this.#running--
        slots.release()
      })
      .then((againMs) => (againMs === undefined ? undefined : this.#again(line, tries + 1, againMs)))
      .catch((error) => this.#fail(error))
      .finally(() => void this.#lines.delete(running))
    this.#lines.add(running)
    return true
  }

  async #again(line: BatchLine, tries: number, waitMs: number): Promise<void> {
    const untilMs = this.deps.clock.monotonicMs() + waitMs
    this.#delayed++
    while (!this.#stop && this.deps.clock.monotonicMs() < untilMs) await Bun.sleep(pollMs)
    this.#delayed--
    await this.#begin(line, tries)
  }

  /** A defect or a database that does not answer: another process, or this one later, goes on. */
  #fail(error: unknown): void {
    this.stop('handed over')
    throw error
  }

  /** Returns after how long it is to be tried again; undefined = it is final, or another process decides. */
  async #runLine(line: BatchLine, tries: number, result?: LineResult): Promise<number | undefined> {
    const { lineKeys, atProvider } = this.deps
    const { provider } = this.batch
    const run = provider === undefined ? this.deps.run : atProvider.at(provider).run
    const lineKey = `${this.batch.id}:${line.line}`
    const facts = { batchId: this.batch.id, keyId: this.batch.keyId, lineKey, body: line.body }
    const running: RunningLine = {
      ...{ requestId: undefined, isKept: false, end: Promise.withResolvers(), result },
      keep: (requestId, answer) => this.#writer.keep(this.#answered(line, 'succeeded', requestId, 200, answer)),
      forget: (requestId) => this.deps.store.forget(this.batch.id, { line: line.line, requestId }),
    }
    lineKeys.begin(lineKey, running)
    try {
      const request = lineRequest(this.#kind, facts)
      const answer = await run[this.#kind.operation](request, this.#kind.surface, this.#kind.url, noConnection)
      const end = running.isKept ? await running.end.promise : 'not charged'
      if (end === 'charged') {
        this.waitsFor = undefined
        this.#writer.charged(line.line, await this.#figures(answer, running.requestId))
        return undefined
      }
      if (end === 'unresolved') return undefined
      // Its charge could not be made. The provider still has the result.
      if (result && running.isKept) return chargeRetryMs
      return this.#refused(line, tries, answer, result)
    } finally {
      lineKeys.end(lineKey)
    }
  }

  /** Of a line that was charged. */
  async #figures({ status, headers, body }: Answer, requestId: RequestId | undefined): Promise<LineFigures> {
    const cost = status === 200 ? parseUsd(String(headers['x-tollgate-cost'] ?? '0')) : undefined
    if (cost !== undefined) return { outcome: 'succeeded', cost, ...tokensOf(body as Uint8Array) }
    // Its charge was confirmed late, after the answer.
    const charge = requestId && (await this.deps.store.chargeOf(requestId))
    return { outcome: 'succeeded', ...(charge || { cost: zeroNano, inputTokens: 0, outputTokens: 0 }) }
  }

  /** What a line does that was not answered and not charged. */
  #refused(line: BatchLine, tries: number, answer: Answer, result?: LineResult): number | undefined {
    const { status, headers } = answer
    const body = answer.body as Uint8Array
    const isFinal = result?.isTaken === true
    if (!isFinal && (status === 401 || status === 403)) {
      if (!this.#stop) this.refuseKey(messageOf(body), line.line)
      return undefined
    }
    // A result whose money is gone waits for as long as its batch does.
    if (!isFinal && (status === 402 || status === 429) && !(result && this.#stop)) {
      this.waitsFor = status === 402 ? 'balance' : 'limit'
      const askedMs = Number(headers['retry-after-ms'] ?? pauseMinMs)
      const waitMs = Math.min(pauseMaxMs, Math.max(pauseMinMs, askedMs))
      if (result) return waitMs
      this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.deps.clock.monotonicMs() + waitMs)
      return 0
    }
    if (result && !isFinal && status === 503) return chargeRetryMs
    const mayPass = status === 503 || headers['x-should-retry'] === 'true'
    const waitMs = retryMs[tries]
    if (mayPass && waitMs !== undefined) return waitMs
    const requestId = headers['x-request-id'] as RequestId
    this.#writer.uncharged(this.#answered(line, 'errored', requestId, status, body))
    return undefined
  }

  #answered(
    { line, customId }: Pick<BatchLine, 'line' | 'customId'>,
    outcome: LineOutcome,
    requestId: RequestId | undefined,
    status?: number,
    body?: Uint8Array,
  ): NewLine {
    const result = { customId, status, body: body ? Buffer.from(body).toString() : 'null' }
    const bytes = Buffer.byteLength(renderLine(this.batch, { line, outcome, requestId, result }))
    return { line, outcome, requestId, result, bytes }
  }

  /** Finds out which answers were charged that a process kept before it ended. Returns the lines that have not run after all. */
  async #resolve(kept: readonly KeptLine[]): Promise<readonly number[]> {
    const { store } = this.deps
    const forgotten: number[] = []
    for (const one of kept) {
      // Its process may be alive, or its hold waits for the reaper.
      while ((await store.isHeld(one.requestId)) && this.#stop !== 'handed over') await Bun.sleep(pollMs)
      if (this.#stop === 'handed over') break
      const charge = await store.chargeOf(one.requestId)
      if (charge) this.#writer.charged(one.line, { outcome: 'succeeded', ...charge })
      else {
        await store.forget(this.batch.id, one)
        forgotten.push(one.line)
      }
    }
    await this.#writer.flush()
    return forgotten
  }

  // ── The end ──

  async #end(): Promise<void> {
    const { store, clock } = this.deps
    const outcome = this.#stop === undefined || this.#stop === 'handed over' ? 'completed' : this.#stop
    this.batch =
      (await store.beginEnd(this.claim, outcome, this.#errors, clock.now())) ??
      (await store.find(this.batch.workspaceId, this.batch.id)) ??
      this.batch
    await this.#writeNotRun()
    await this.#releaseWhole()
    const { answers, errors } = await store.sizes(this.batch.id)
    const isOpenai = this.batch.surface === 'chat'
    const now = clock.now()
    const end = {
      now,
      eraseAt: now + this.batch.outputDays * dayMs,
      outputFileId: isOpenai && answers > 0 ? createId('file') : undefined,
      errorFileId: isOpenai && errors > 0 ? createId('file') : undefined,
    }
    await store.end(this.claim, end, async (sql, batch) => {
      if (end.outputFileId)
        await insertResultFile(sql, batch, { id: end.outputFileId, hasAnswers: true, bytes: answers, end })
      if (end.errorFileId)
        await insertResultFile(sql, batch, { id: end.errorFileId, hasAnswers: false, bytes: errors, end })
      await expireInput(sql, batch.inputFileId, now)
      await raiseAlert(sql, endedAlert(batch), this.deps.raising())
    })
  }

  /** All lines are final: what is left of the hold of a batch at its provider is free again. */
  async #releaseWhole(): Promise<void> {
    if (this.batch.provider === undefined) return
    const { jobs, ledger } = this.deps.atProvider
    const { holdId } = (await jobs.wholeHold(this.batch.id)) ?? {}
    const outcome = holdId && (await ledger.endStanding(holdId, this.batch.workspaceId))
    if (outcome && outcome.kind === 'unavailable') throw new Error(`the hold of ${this.batch.id} could not be released`)
  }

  /** A line that was not run gets a result that says so. */
  async #writeNotRun(): Promise<void> {
    const { store, files } = this.deps
    const { outcome = 'completed', id, inputFileId, workspaceId, total } = this.batch
    const { lines, kept } = await store.answered(id)
    await this.#resolve(kept)
    if (lines.size >= total) return
    const why: LineOutcome = outcome === 'expired' ? 'expired' : 'cancelled'
    let waiting = 0
    for await (const raw of readLines(files.read({ id: inputFileId, workspaceId }))) {
      if (lines.has(raw.line)) continue
      const parsed = parseLine(raw, this.batch.endpoint)
      if ('code' in parsed) continue
      this.#writer.uncharged(this.#answered(parsed, why, undefined))
      if (++waiting % 32 === 0) await this.#writer.flush()
    }
    await this.#writer.flush()
  }
}

/** For webhooks. */
function endedAlert(batch: Batch): NewAlert {
  const { id, workspaceId, total, succeeded, errored, cancelled, expired } = batch
  const [status, cost] = [statusOf(batch), formatUsd(batch.cost)]
  const message = `Batch ${id} has ended (${status}): ${succeeded} of ${total} lines have an answer. It cost $${cost}.`
  const files = { output_file_id: batch.outputFileId ?? null, error_file_id: batch.errorFileId ?? null }
  const data = { batch_id: id, status, total, succeeded, errored, cancelled, expired, cost, ...files }
  return { crossing: `batch:${id}`, kind: 'batch.ended', workspaceId, message, data }
}

/** As the surface reports them. */
function tokensOf(body: Uint8Array): Pick<LineFigures, 'inputTokens' | 'outputTokens'> {
  const { usage = {} } = JSON.parse(Buffer.from(body).toString()) as { usage?: Readonly<Record<string, unknown>> }
  const count = (...names: readonly string[]) =>
    names.reduce((sum, name) => sum + (typeof usage[name] === 'number' ? Number(usage[name]) : 0), 0)
  return {
    inputTokens: count('prompt_tokens', 'input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'),
    outputTokens: count('completion_tokens', 'output_tokens'),
  }
}

function messageOf(body: Uint8Array): string {
  const { error } = JSON.parse(Buffer.from(body).toString()) as { error?: { message?: string } }
  return error?.message ?? ''
}
