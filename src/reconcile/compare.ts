// Compares a provider's bill with what was recorded, and says why they differ. In this order: the same days, without keys that
// the gateway does not use; quantities; then prices. All amounts are exact pico-dollars: what is explained and what is not add up
// to the difference of each model and bucket. Nothing here reads or writes anything.

import type { BillCause } from '../kernel/bill.ts'
import type { RequestId } from '../kernel/ids.ts'
import { buckets as allBuckets, type TokenBucket, tokenBuckets } from '../kernel/usage.ts'
import { type BillLine, dayMs, roundedQuotient } from './bill.ts'
import { allInput, allOutput } from './openrouter.ts'
import type { Amount, Amounts, EdgeRequest, Recorded, RecordedModel, Suspect } from './recorded.ts'

/** A model and bucket on one day. */
export interface ComparedLine {
  readonly model: string
  readonly bucket: string
  readonly billedQuantity: bigint
  readonly recordedQuantity: bigint
  /** Pico-dollars. */
  readonly billed: bigint
  readonly recorded: bigint
}

export interface ExplainedPart {
  readonly model: string
  readonly cause: BillCause
  /** Billed more (or less, if negative) for this reason, in pico-dollars. */
  pico: bigint
  /** Tokens or units; 0 = it is only the price. */
  quantity: bigint
  /** The requests that fit; empty = none passed the gateway, or it concerns all of the model. */
  readonly requests: ReadonlySet<RequestId>
  /** A key that the gateway does not use: not part of the bill that is compared. */
  readonly foreignKey?: string
  /** For people. */
  readonly detail?: string
}

export interface ComparedDay {
  readonly day: number
  readonly lines: readonly ComparedLine[]
  readonly parts: readonly ExplainedPart[]
  /** What no cause fits, as a sum without signs. */
  readonly unexplained: bigint
}

export interface CompareOptions {
  readonly days: readonly number[]
  /** undefined = whatever is billed is compared. */
  readonly keys: readonly string[] | undefined
}

export function compareBill(
  billed: readonly BillLine[],
  recorded: Recorded,
  { days, keys }: CompareOptions,
): readonly ComparedDay[] {
  const { own, foreign } = splitKeys(billed, keys)
  const named = alignedModels(own, recorded)
  const cells = new Map<number, ReadonlyMap<string, ModelDay>>()
  const context = { recorded, namesTiers: own.some(({ tier }) => tier !== '') }
  for (const day of days) cells.set(day, modelDays(day, named.get(day) ?? [], context))
  shiftMidnights(cells, recorded)
  return days.map((day) => {
    const models = [...(cells.get(day)?.values() ?? [])]
    for (const model of models) model.explain()
    return {
      day,
      lines: models.flatMap((model) => model.lines()),
      parts: [...models.flatMap(({ parts }) => parts), ...foreignParts(day, foreign)],
      unexplained: models.reduce((sum, model) => sum + model.unexplained, 0n),
    }
  })
}

// ── Keys ──

interface ForeignLine extends BillLine {
  readonly pico: bigint | undefined
}

/** A report whose amounts have no key is split by the share that other keys have in the tokens. */
function splitKeys(lines: readonly BillLine[], keys: readonly string[] | undefined) {
  if (!keys) return { own: lines, foreign: [] as readonly ForeignLine[] }
  const isForeign = ({ key }: BillLine) => key !== '' && !keys.includes(key)
  const nameOf = ({ day, model, bucket, tier, region }: BillLine) => JSON.stringify([day, model, bucket, tier, region])
  const counted = Map.groupBy(
    lines.filter(({ key, quantity }) => key !== '' && quantity !== undefined),
    nameOf,
  )
  const own: BillLine[] = []
  const foreign: ForeignLine[] = lines.filter(isForeign)
  for (const line of lines) {
    if (isForeign(line)) continue
    const shared = line.key === '' && line.pico !== undefined ? (counted.get(nameOf(line)) ?? []) : []
    const total = sumBy(shared, ({ quantity }) => quantity ?? 0n)
    const others = shared.filter(isForeign)
    let rest = line.pico
    for (const other of others) {
      if (rest === undefined || total === 0n) break
      const pico = roundedQuotient((line.pico ?? 0n) * (other.quantity ?? 0n), total)
      rest -= pico
      foreign.push({ ...line, key: other.key, pico })
    }
    own.push({ ...line, pico: rest })
  }
  return { own, foreign }
}

function foreignParts(day: number, lines: readonly ForeignLine[]): readonly ExplainedPart[] {
  const groups = Map.groupBy(
    lines.filter((line) => line.day === day),
    ({ key, model }) => JSON.stringify([key, model]),
  )
  return [...groups.values()].map((group) => ({
    model: group[0]?.model ?? '',
    cause: 'outside',
    pico: sumBy(group, ({ pico }) => pico ?? 0n),
    quantity: sumBy(group, ({ quantity }) => quantity ?? 0n),
    requests: new Set<RequestId>(),
    foreignKey: group[0]?.key ?? '',
    detail: `key ${group[0]?.key}, which the gateway does not use`,
  }))
}

// ── Models ──

/** `claude-x-20251101` and `gpt-x-2025-11-01` are snapshots of the models without the date. */
const snapshotPattern = /-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/

/** By day, with the models named as in our routes. */
function alignedModels(lines: readonly BillLine[], { days }: Recorded): ReadonlyMap<number, readonly BillLine[]> {
  const known = new Set([...days.values()].flatMap((models) => [...models.keys()]))
  const byStem = new Map([...known].map((model) => [model.replace(snapshotPattern, ''), model] as const))
  const nameOf = (model: string) =>
    known.has(model) ? model : (byStem.get(model.replace(snapshotPattern, '')) ?? model)
  return Map.groupBy(
    lines.map((line) => ({ ...line, model: nameOf(line.model) })),
    ({ day }) => day,
  )
}

interface Context {
  readonly recorded: Recorded
  /** The bill has lines of service tiers. */
  readonly namesTiers: boolean
}

function modelDays(day: number, lines: readonly BillLine[], context: Context): ReadonlyMap<string, ModelDay> {
  const models = context.recorded.days.get(day) ?? new Map<string, RecordedModel>()
  const billed = Map.groupBy(lines, ({ model }) => model)
  const names = new Set([...billed.keys(), ...models.keys()])
  return new Map(
    [...names].map((name) => [name, new ModelDay(name, billed.get(name) ?? [], models.get(name), context)]),
  )
}

interface Cell {
  billedQuantity: bigint
  recordedQuantity: bigint
  billed: bigint
  recorded: bigint
  /** Billed less recorded tokens that are not explained yet. */
  residual: bigint
}

const bucketSide = (bucket: string): 'input' | 'output' | undefined => {
  if (bucket === allInput || bucket === allOutput) return bucket === allInput ? 'input' : 'output'
  return tokenBuckets.find((info) => info.bucket === bucket)?.side
}

/** How many tokens one cause can explain at most, by side, and its requests. */
interface Room {
  readonly cause: BillCause
  /** Billed more, and billed less, than recorded. */
  readonly more: Record<'input' | 'output', bigint>
  readonly less: Record<'input' | 'output', bigint>
  readonly requests: ReadonlySet<RequestId>
  readonly detail?: string | undefined
}

/** At least as long as the first step of a hold. */
const answerMin = 4096

class ModelDay {
  readonly parts: ExplainedPart[] = []
  readonly cells = new Map<string, Cell>()
  unexplained = 0n
  /** The amounts are of all tokens together. */
  readonly #isWhole: boolean
  /** The report counts tokens. */
  readonly #isCounted: boolean
  readonly #billedRequests: bigint | undefined
  /** What was recorded in other service tiers, by bucket and tier. */
  readonly #tiered = new Map<string, Map<string, Amount>>()
  #movedRequests = 0n
  #expectedMore: ReadonlyMap<string, bigint> | undefined

  constructor(
    readonly model: string,
    private readonly billLines: readonly BillLine[],
    private readonly recordedModel: RecordedModel | undefined,
    private readonly context: Context,
  ) {
    const requests = billLines.flatMap((line) => line.requests ?? [])
    this.#billedRequests = requests.length === 0 ? undefined : requests.reduce((sum, each) => sum + each, 0n)
    this.#isWhole = billLines.some(({ bucket, pico }) => bucket === '' && pico !== undefined)
    this.#isCounted = billLines.some(({ quantity }) => quantity !== undefined)
    for (const line of billLines) {
      const cell = this.#cellOf(this.#bucketOf(line.bucket))
      cell.billedQuantity += line.quantity ?? 0n
      cell.billed += line.pico ?? 0n
    }
    for (const [bucket, { quantity, pico }] of recordedModel?.buckets ?? []) {
      const cell = this.#cellOf(this.#bucketOf(bucket))
      cell.recordedQuantity += quantity
      cell.recorded += pico
    }
    for (const [tier, { amounts }] of recordedModel?.tiers ?? []) {
      for (const [bucket, amount] of amounts) this.#addTiered(this.#bucketOf(bucket), tier, amount)
    }
    if (this.#isCounted || billLines.length === 0) {
      for (const cell of this.cells.values()) cell.residual = cell.billedQuantity - cell.recordedQuantity
    }
  }

  lines(): readonly ComparedLine[] {
    const lines = [...this.cells].map(([bucket, { residual: _, ...cell }]) => ({ model: this.model, bucket, ...cell }))
    // One amount for all tokens can only be compared with all of them.
    const compared = this.#isWhole ? [totalLine(this.model, lines)] : lines
    return compared.filter(({ model, bucket, ...figures }) => Object.values(figures).some((value) => value !== 0n))
  }

  /** A part that only one side tells apart, such as audio, counts as its whole. */
  #bucketOf(bucket: string): string {
    const side = bucketSide(bucket)
    const isWholeSided = this.billLines.some((line) => line.bucket === allInput)
    if (this.#isWhole && isWholeSided && side) return side === 'input' ? allInput : allOutput
    if (this.#isWhole && !isWholeSided) return ''
    const info = allBuckets[bucket as TokenBucket]
    if (info === undefined || !('partOf' in info)) return bucket
    const isTold =
      this.billLines.some((line) => line.bucket === bucket) && (this.recordedModel?.buckets.has(bucket) ?? false)
    return isTold ? bucket : info.partOf
  }

  #cellOf(bucket: string): Cell {
    const cell = this.cells.get(bucket) ?? {
      ...{ billedQuantity: 0n, recordedQuantity: 0n, billed: 0n, recorded: 0n, residual: 0n },
    }
    this.cells.set(bucket, cell)
    return cell
  }

  #addTiered(bucket: string, tier: string, { quantity, pico }: Amount): void {
    const tiers = this.#tiered.get(bucket) ?? new Map<string, Amount>()
    this.#tiered.set(bucket, tiers)
    const amount = tiers.get(tier) ?? { quantity: 0n, pico: 0n }
    tiers.set(tier, { quantity: amount.quantity + quantity, pico: amount.pico + pico })
  }

  /** What so many tokens cost at our price of that day, in the standard tier. */
  valueOf(bucket: string, quantity: bigint): bigint {
    const cell = this.cells.get(bucket)
    if (!cell || quantity === 0n) return 0n
    const tiered = [...(this.#tiered.get(bucket)?.values() ?? [])]
    const usual = cell.recordedQuantity - sumBy(tiered, (amount) => amount.quantity)
    const recorded = cell.recorded - sumBy(tiered, ({ pico }) => pico)
    if (usual > 0n && recorded > 0n) return roundedQuotient(quantity * recorded, usual)
    const rate = this.context.recorded.rateOf(this.model, bucket)
    if (rate !== undefined) return quantity * rate
    return cell.billedQuantity > 0n ? roundedQuotient(quantity * cell.billed, cell.billedQuantity) : 0n
  }

  // ── Midnight ──

  get canShift(): boolean {
    return this.#isCounted
  }

  /** How much is left if these tokens are counted here as well (or not, if negative), and suspects are billed as expected. */
  restWith(moved: ReadonlyMap<string, bigint>): bigint {
    let rest = 0n
    for (const bucket of new Set([...this.cells.keys(), ...moved.keys()])) {
      const residual = this.cells.get(bucket)?.residual ?? 0n
      rest += size(this.valueOf(bucket, residual - (this.#expected().get(bucket) ?? 0n) + (moved.get(bucket) ?? 0n)))
    }
    return rest
  }

  #expected(): ReadonlyMap<string, bigint> {
    if (this.#expectedMore) return this.#expectedMore
    const expected = new Map<string, bigint>()
    for (const { more } of this.recordedModel?.suspects ?? []) {
      for (const [bucket, quantity] of more) {
        const name = this.#bucketOf(bucket)
        expected.set(name, (expected.get(name) ?? 0n) + quantity)
      }
    }
    this.#expectedMore = expected
    return expected
  }

  /** Counts a request here that the provider counts on another day (-1n), or the other way round. */
  shift({ id, buckets: moved }: EdgeRequest, sign: 1n | -1n): void {
    for (const [bucket, quantity] of this.quantitiesOf(moved)) {
      this.#cellOf(bucket).residual += sign * quantity
      this.#explain('midnight', -sign * this.valueOf(bucket, quantity), -sign * quantity, new Set([id]))
    }
    this.#movedRequests -= sign
  }

  quantitiesOf(amounts: Amounts): ReadonlyMap<string, bigint> {
    const quantities = new Map<string, bigint>()
    for (const [bucket, { quantity }] of amounts) {
      const name = this.#bucketOf(bucket)
      quantities.set(name, (quantities.get(name) ?? 0n) + quantity)
    }
    return quantities
  }

  // ── Quantities ──

  explain(): void {
    // Before anything is explained: prices are what quantities at our price leave over.
    const price = this.#priceDifferences()
    const suspects = this.recordedModel?.suspects ?? []
    if (this.#isCounted) {
      for (const cause of ['implausible_count', 'failed_attempt'] as const) this.#explainExpected(suspects, cause)
      this.#explainWithin(suspects)
      this.#explainOutside(suspects)
      for (const [bucket, { residual }] of this.cells) this.unexplained += size(this.valueOf(bucket, residual))
    }
    price()
  }

  /** What was counted there and not recorded here. */
  #explainExpected(suspects: readonly Suspect[], cause: 'implausible_count' | 'failed_attempt'): void {
    for (const { id, cause: its, more } of suspects) {
      if (its !== cause) continue
      for (const [bucket, expected] of more) {
        const cell = this.cells.get(this.#bucketOf(bucket))
        if (!cell) continue
        // A reported count is exact, and other differences may hide a part of it. An estimate is not.
        const isReported = cause === 'implausible_count' && 2n * cell.residual >= expected
        const taken = isReported ? expected : within(cell.residual, 0n, expected)
        if (taken > 0n) this.#take(this.#bucketOf(bucket), taken, cause, new Set([id]))
      }
    }
  }

  /**
   * Estimates are off by as much again at most, and an answer that was cut is no longer than the longest of the day. What such
   * requests leave room for is divided among their causes: a bill does not say which of them it was.
   */
  #explainWithin(suspects: readonly Suspect[]): void {
    const answerMax = BigInt(Math.max(answerMin, this.recordedModel?.outputMax ?? 0))
    const rooms: Room[] = (['cut_answer', 'estimated_usage', 'failed_attempt'] as const).flatMap(
      (cause): readonly Room[] => {
        const found = suspects.filter((suspect) => suspect.cause === cause)
        if (found.length === 0) return []
        const [input, output] = [sumBy(found, (each) => each.input), sumBy(found, (each) => each.output)]
        const longest = answerMax * BigInt(found.length)
        // A failed attempt is no part of what was recorded, so it cannot have been recorded too high.
        const less = cause === 'failed_attempt' ? { input: 0n, output: 0n } : { input, output }
        const more = { input, output: cause === 'estimated_usage' ? output : longest }
        return [{ cause, more, less, requests: new Set(found.map(({ id }) => id)) }]
      },
    )
    rooms.push(...this.#outsideRoom(suspects))
    for (const [bucket, { residual }] of this.cells) {
      const side = bucketSide(bucket)
      if (!side || residual === 0n) continue
      const roomOf = ({ more, less }: Room) => (residual > 0n ? more : less)
      const total = sumBy(rooms, (room) => roomOf(room)[side])
      if (total === 0n) continue
      const wanted = within(size(residual), 0n, total)
      let given = 0n
      let roomsBefore = 0n
      const used: [Room, bigint][] = []
      for (const room of rooms) {
        // Shares of what is added up so far, so that they add up to the whole.
        roomsBefore += roomOf(room)[side]
        const share = (wanted * roomsBefore) / total - given
        if (share === 0n) continue
        given += share
        used.push([room, share])
        this.#take(bucket, residual > 0n ? share : -share, room.cause, room.requests, room.detail)
      }
      for (const [room, share] of used) roomOf(room)[side] -= share
    }
  }

  /** Requests that the bill counts and nobody recorded are about as long as the others of the day. */
  #outsideRoom(suspects: readonly Suspect[]): readonly Room[] {
    const count = this.#requestsOutside(suspects)
    const recorded = this.recordedModel?.requests ?? 0n
    if (count === undefined || recorded === 0n) return []
    const more = { input: 0n, output: 0n }
    for (const [bucket, { recordedQuantity }] of this.cells) {
      const side = bucketSide(bucket)
      if (side) more[side] += (recordedQuantity * count) / recorded
    }
    const detail = this.#outsideText(suspects)
    return [{ cause: 'outside', more, less: { input: 0n, output: 0n }, requests: new Set(), detail }]
  }

  /** More requests there than here, or a model that nobody asked us for. Without a count of requests: nothing else fits. */
  #explainOutside(suspects: readonly Suspect[]): void {
    const isMore =
      this.#billedRequests === undefined ? suspects.length === 0 : this.#requestsOutside(suspects) !== undefined
    if (this.#ours > 0n && !isMore) return
    const detail = this.#outsideText(suspects)
    for (const [bucket, { residual }] of this.cells) {
      if (residual > 0n) this.#take(bucket, residual, 'outside', new Set(), detail)
    }
  }

  /** By the provider's way to count days. */
  get #ours(): bigint {
    return (this.recordedModel?.requests ?? 0n) + this.#movedRequests
  }

  /** How many more requests the bill counts than answers and failed attempts were recorded; undefined = none, or no count. */
  #requestsOutside(suspects: readonly Suspect[]): bigint | undefined {
    const failed = BigInt(suspects.filter(({ cause }) => cause === 'failed_attempt').length)
    const count = (this.#billedRequests ?? 0n) - this.#ours - failed
    return count > 0n ? count : undefined
  }

  #outsideText(suspects: readonly Suspect[]): string | undefined {
    const count = this.#requestsOutside(suspects)
    if (count === undefined) return undefined
    return `${count} request${count === 1n ? '' : 's'} more than were recorded`
  }

  #take(
    bucket: string,
    quantity: bigint,
    cause: BillCause,
    requests: ReadonlySet<RequestId>,
    detail?: string | undefined,
  ): void {
    const cell = this.#cellOf(bucket)
    // Differences of values, so that the parts add up in spite of rounding.
    const pico = this.valueOf(bucket, cell.residual) - this.valueOf(bucket, cell.residual - quantity)
    cell.residual -= quantity
    this.#explain(cause, pico, quantity, requests, detail)
  }

  // ── Prices ──

  /** What the bill differs by if both counted the same. Returns how to explain it, which comes last. */
  #priceDifferences(): () => void {
    const groups = this.#isWhole ? [[...this.cells.keys()]] : [...this.cells.keys()].map((bucket) => [bucket])
    const found = groups.map((group) => {
      let pico = 0n
      for (const bucket of group) {
        const { billed, recorded, billedQuantity, recordedQuantity } = this.#cellOf(bucket)
        const isCounted = this.#isCounted || this.billLines.length === 0
        const counted = isCounted ? this.valueOf(bucket, billedQuantity - recordedQuantity) : 0n
        pico += billed - recorded - counted
      }
      return { group, pico }
    })
    return () => {
      for (const { group, pico } of found) this.#explainPrice(group, pico)
    }
  }

  #explainPrice(group: readonly string[], pico: bigint): void {
    if (pico === 0n) return
    const lines = this.billLines.filter(({ bucket }) => group.includes(this.#bucketOf(bucket)))
    // Tiers that were recorded are compared by themselves.
    const isRecorded = ({ bucket, tier }: BillLine) => this.#tiered.get(this.#bucketOf(bucket))?.has(tier) === true
    const labelled = lines.filter(
      (line) => labelOf(line) !== 'list_price' && (line.quantity ?? 0n) > 0n && !isRecorded(line),
    )
    const shares = this.#tierShares(group, lines)
    const others = pico - sumBy([...shares.values()], (share) => share)
    const [dearest] = labelled.toSorted((a, b) => Number((b.quantity ?? 0n) - (a.quantity ?? 0n)))
    const isJoined = labelled.every((line) => this.#amountAt(lines, line) !== undefined)
    if (dearest && !isJoined) shares.set(labelOf(dearest), others + (shares.get(labelOf(dearest)) ?? 0n))
    else {
      let rest = others
      for (const line of labelled) {
        const share =
          (this.#amountAt(lines, line) ?? 0n) - this.valueOf(this.#bucketOf(line.bucket), line.quantity ?? 0n)
        shares.set(labelOf(line), (shares.get(labelOf(line)) ?? 0n) + share)
        rest -= share
      }
      const [last] = [...shares.keys()]
      // Less than a nano-dollar is the rounding of an average.
      if (last !== undefined && size(rest) < 1000n) shares.set(last, (shares.get(last) ?? 0n) + rest)
      else if (this.#isPriced(group)) shares.set('list_price', rest)
      else this.#explainByValue(rest)
    }
    for (const [cause, share] of shares) {
      if (share === 0n) continue
      const isOfTiers = cause === 'tier' || cause === 'batch'
      const requests = isOfTiers ? this.#requestsInTiers(group, lines) : new Set<RequestId>()
      this.#explain(cause, share, 0n, requests, this.#rateText(group))
    }
  }

  /** Where a tier has fewer tokens on the bill: those charged in it. Where it has more: those whose replies name it. */
  #requestsInTiers(group: readonly string[], lines: readonly BillLine[]): ReadonlySet<RequestId> {
    const found = new Set<RequestId>()
    for (const [name, { charged, unpriced }] of this.recordedModel?.tiers ?? []) {
      const billed = lines.filter(({ tier }) => tier === name)
      const more =
        sumBy(billed, ({ quantity }) => quantity ?? 0n) -
        sumBy(group, (bucket) => this.#tiered.get(bucket)?.get(name)?.quantity ?? 0n)
      if (more === 0n) continue
      for (const id of more < 0n ? charged : unpriced) found.add(id)
    }
    return found
  }

  /** Tokens that the bill has in another tier than was recorded, at the difference of the prices. */
  #tierShares(group: readonly string[], lines: readonly BillLine[]): Map<BillCause, bigint> {
    let tier = 0n
    // A report that names no tiers may bill by them all the same.
    if (!this.context.namesTiers) return new Map()
    for (const bucket of group) {
      for (const [name, recorded] of this.#tiered.get(bucket) ?? []) {
        const billed = lines.filter((line) => this.#bucketOf(line.bucket) === bucket && line.tier === name)
        const quantity = sumBy(billed, (line) => line.quantity ?? 0n)
        const matched = within(quantity, 0n, recorded.quantity)
        const valueIn = (tokens: bigint) => roundedQuotient(tokens * recorded.pico, recorded.quantity || 1n)
        const amounts = billed.flatMap((line) => line.pico ?? [])
        if (quantity > matched && amounts.length > 0) {
          const expected = valueIn(matched) + this.valueOf(bucket, quantity - matched)
          tier += sumBy(amounts, (amount) => amount) - expected
        }
        const elsewhere = recorded.quantity - matched
        tier += this.valueOf(bucket, elsewhere) - valueIn(elsewhere)
      }
    }
    return tier === 0n ? new Map() : new Map([['tier', tier]])
  }

  /** Whether there is a price and a count on both sides, so that what is left is the price. */
  #isPriced(group: readonly string[]): boolean {
    const { said } = this.recordedModel ?? {}
    if (said && said.requests > 0n) return true
    return group.some((bucket) => this.#cellOf(bucket).billedQuantity > 0n && this.#cellOf(bucket).recorded > 0n)
  }

  /** Amounts without counts: by what the requests that fit probably cost. */
  #explainByValue(pico: bigint): void {
    const ours = this.recordedModel?.requests ?? 0n
    const suspects = this.recordedModel?.suspects ?? []
    let rest = pico
    for (const cause of ['implausible_count', 'failed_attempt', 'cut_answer', 'estimated_usage'] as const) {
      for (const { id, cause: its, more, input, output } of suspects) {
        if (its !== cause || rest <= 0n) continue
        const counted = more.size > 0 ? [...more] : [...Object.entries({ input, output })]
        const rateOf = (bucket: string) => this.context.recorded.rateOf(this.model, bucket) ?? 0n
        const expected = counted.reduce((sum, [bucket, quantity]) => sum + quantity * rateOf(bucket), 0n)
        const taken = within(rest, 0n, expected)
        if (taken > 0n) this.#explain(cause, taken, 0n, new Set([id]))
        rest -= taken
      }
    }
    const isMore = this.#billedRequests !== undefined && this.#billedRequests > ours + BigInt(suspects.length)
    if (rest > 0n && (ours === 0n || isMore)) this.#explain('outside', rest, 0n, new Set())
    else this.unexplained += size(rest)
  }

  #amountAt(lines: readonly BillLine[], { bucket, tier, region, key }: BillLine): bigint | undefined {
    const same = lines.filter(
      (line) => line.bucket === bucket && line.tier === tier && line.region === region && line.pico !== undefined,
    )
    const keyed = same.filter((line) => line.key === key)
    const found = keyed.length > 0 ? keyed : same
    return found.length === 0 ? undefined : sumBy(found, ({ pico }) => pico ?? 0n)
  }

  /** `input billed at $3.30 per million, recorded at $3.00` */
  #rateText(group: readonly string[]): string | undefined {
    const [bucket = ''] = group
    const { billed, recorded, billedQuantity, recordedQuantity } = this.#cellOf(bucket)
    if (group.length > 1 || billedQuantity === 0n || recordedQuantity === 0n) return undefined
    const [there, here] = [roundedQuotient(billed, billedQuantity), roundedQuotient(recorded, recordedQuantity)]
    return `${bucket}: billed at $${perMillion(there)} per million, recorded at $${perMillion(here)}`
  }

  #explain(
    cause: BillCause,
    pico: bigint,
    quantity: bigint,
    requests: ReadonlySet<RequestId>,
    detail?: string | undefined,
  ): void {
    const at = this.parts.findIndex((part) => part.cause === cause)
    const before = this.parts[at]
    const details = new Set([before?.detail, detail].filter((each) => each !== undefined))
    const part = {
      ...{ model: this.model, cause, pico: pico + (before?.pico ?? 0n), quantity: quantity + (before?.quantity ?? 0n) },
      requests: before ? before.requests.union(requests) : requests,
      ...(details.size > 0 && { detail: [...details].join('; ') }),
    }
    if (at < 0) this.parts.push(part)
    else this.parts[at] = part
  }
}

function totalLine(model: string, lines: readonly ComparedLine[]): ComparedLine {
  return {
    ...{ model, bucket: '' },
    billedQuantity: sumBy(lines, ({ billedQuantity }) => billedQuantity),
    recordedQuantity: sumBy(lines, ({ recordedQuantity }) => recordedQuantity),
    billed: sumBy(lines, ({ billed }) => billed),
    recorded: sumBy(lines, ({ recorded }) => recorded),
  }
}

function labelOf({ tier, region }: BillLine): BillCause {
  return tier === 'batch' ? 'batch' : tier !== '' ? 'tier' : region !== '' ? 'region' : 'list_price'
}

function perMillion(pico: bigint): string {
  return (Number(pico) / 1e6).toFixed(4).replace(/0{1,2}$/, '')
}

// ── Midnight ──

/** How a provider may count otherwise than by the start of a call: on which side of midnight a request then is. */
type CountedBy = (request: EdgeRequest, midnight: number) => 'later' | 'earlier' | 'same'

const byEnd: CountedBy = ({ startAt, endAt }, midnight) => (startAt < midnight && endAt >= midnight ? 'later' : 'same')

function byClock(aheadMs: number): CountedBy {
  return ({ startAt }, midnight) => {
    if (startAt < midnight) return startAt + aheadMs >= midnight ? 'later' : 'same'
    return startAt + aheadMs < midnight ? 'earlier' : 'same'
  }
}

const clocksMs = [1, 5, 15, 60, 300, 600].flatMap((seconds) => [seconds * 1000, -seconds * 1000])
const ways: readonly CountedBy[] = [byEnd, ...clocksMs.map(byClock)]

interface Move {
  readonly request: EdgeRequest
  /** Where we and where the provider count it. */
  readonly from: ModelDay
  readonly to: ModelDay
}

/**
 * Moves requests that the provider counts on the other side of midnight. A provider counts in one way only, so the way is chosen
 * by all midnights together: single days differ for other reasons too.
 */
function shiftMidnights(cells: ReadonlyMap<number, ReadonlyMap<string, ModelDay>>, recorded: Recorded): void {
  let best: { readonly moves: readonly Move[]; readonly less: bigint } | undefined
  for (const way of ways) {
    const moves = movesOf(way, cells, recorded)
    const less = improvement(moves)
    if (less > 0n && less > (best?.less ?? 0n)) best = { moves, less }
  }
  for (const { request, from, to } of best?.moves ?? []) {
    from.shift(request, 1n)
    to.shift(request, -1n)
  }
}

function movesOf(
  way: CountedBy,
  cells: ReadonlyMap<number, ReadonlyMap<string, ModelDay>>,
  { edges }: Recorded,
): readonly Move[] {
  const moves: Move[] = []
  for (const [midnight, requests] of edges) {
    for (const request of requests) {
      const side = way(request, midnight)
      if (side === 'same') continue
      const before = cells.get(midnight - dayMs)?.get(request.model)
      const after = cells.get(midnight)?.get(request.model)
      if (!before?.canShift || !after?.canShift) continue
      const [from, to] = side === 'later' ? [before, after] : [after, before]
      moves.push({ request, from, to })
    }
  }
  return moves
}

/** By how much less the days then differ, at our prices. */
function improvement(moves: readonly Move[]): bigint {
  const moved = new Map<ModelDay, Map<string, bigint>>()
  const count = (model: ModelDay, { buckets }: EdgeRequest, sign: 1n | -1n) => {
    const sums = moved.get(model) ?? new Map<string, bigint>()
    moved.set(model, sums)
    for (const [bucket, quantity] of model.quantitiesOf(buckets))
      sums.set(bucket, (sums.get(bucket) ?? 0n) + sign * quantity)
  }
  for (const { request, from, to } of moves) {
    count(from, request, 1n)
    count(to, request, -1n)
  }
  let less = 0n
  for (const [model, sums] of moved) less += model.restWith(new Map()) - model.restWith(sums)
  return less
}

// ── Numbers ──

function sumBy<Item>(items: readonly Item[], value: (item: Item) => bigint): bigint {
  return items.reduce((sum, item) => sum + value(item), 0n)
}

function size(value: bigint): bigint {
  return value < 0n ? -value : value
}

function within(value: bigint, min: bigint, max: bigint): bigint {
  return value < min ? min : value > max ? max : value
}
