// Formats one charge: usage and prices, what was paid and held, and why the request took its route. It recomputes every
// sum in pico-dollars and reports one that is wrong. All amounts have the same number of decimals.

import type { AnswerOf } from '../api/client.ts'
import { formatPico } from '../kernel/money.ts'
import { cleanText, counted, shownCount } from './values.ts'

export type ExplainedRequest = AnswerOf<'getRequest'>

/** Minimum width of a label and its tokens, so that most explanations look alike. */
const leftWidthMin = 20
const clientLeftStatus = 499

/** `fault`: what does not add up; undefined = everything does. */
export function explainText(request: ExplainedRequest) {
  const { lines, fault } = chargeLines(request)
  const notes = request.notes.map((note) => `  note  ${note}`)
  const text = [headLine(request), ...fallbackLine(request), ...lines, ...notes, ...routeLines(request)]
  return { text: `${text.map(cleanText).join('\n')}\n`, fault }
}

function headLine({ id, model, path, provider, attempts, transfers, charge }: ExplainedRequest): string {
  const transfer = transfers.find(({ kind }) => kind === 'charge')
  return [
    id,
    model ?? path,
    provider === null ? 'no provider' : `via ${provider}`,
    counted(attempts.length, 'attempt'),
    transfer || charge ? 'settled' : 'not charged',
    ...(transfer ? [transfer.id] : []),
  ].join('   ')
}

/** Which model was asked for, if another one answered. */
function fallbackLine({ model, requested_model: requested }: ExplainedRequest): string[] {
  return model === null || !requested ? [] : [`  fallback  ${model} answered in place of ${requested}`]
}

function chargeLines(request: ExplainedRequest): { readonly lines: string[]; readonly fault: string | undefined } {
  const { cost, held, price_version, charge } = request
  if (charge) {
    const sums = sumCharge(request, charge)
    const lines = [...pricedLines(request, charge, sums), ...creditLines(request), ...endLines(request)]
    return { lines, fault: sums.fault }
  }
  const chargePico = transferPico(request, 'charge')
  if (cost !== null && chargePico !== undefined && price_version === null) return ownKeyLines(request, cost, chargePico)
  const lines = [`  charge  ${cost === null ? 'none' : `$${cost}`}      ${statusText(request)}`]
  if (held !== null) lines.push(`  held  $${held};  released $${held}`)
  return { lines, fault: undefined }
}

interface Row {
  readonly label: string
  /** `120`, or empty if the row has no tokens. */
  readonly tokens: string
  /** ` × $1.00 / M`, or empty. */
  readonly price: string
  readonly pico: bigint
  readonly note: string
}

type Charge = NonNullable<ExplainedRequest['charge']>

function pricedLines(request: ExplainedRequest, charge: Charge, sums: ChargeSums): string[] {
  const rows = rowsOf(request, charge, sums)
  const held = request.held === null ? undefined : picoOf(request.held)
  const decimals = Math.max(
    ...[...rows.map(({ pico }) => pico), held ?? 0n].map((pico) => formatPico(pico).split('.')[1]?.length ?? 2),
  )
  const usd = (pico: bigint): string => usdOf(pico, decimals)
  const widest = (width: (row: Row) => number): number => Math.max(...rows.map(width))
  const left = Math.max(
    leftWidthMin,
    widest(({ label, tokens }) => label.length + tokens.length + 1),
  )
  const middle = widest(({ price }) => price.length)
  const amount = widest(({ pico }) => usd(pico).length)
  const lines = rows.map(({ label, tokens, price, pico, note }) => {
    const sum = `${label}${tokens.padStart(left - label.length)}${price.padEnd(middle)}`
    return `  ${sum}    ${usd(pico).padStart(amount)}      ${note}`.trimEnd()
  })
  const { price_version, price_source, price_effective_from: since } = charge
  const tier = request.usage?.service_tier
  const price = [
    price_version,
    price_source,
    since && `since ${since.slice(0, 10)}`,
    tier && `service tier ${tier}`,
  ].filter((part) => part)
  return [...lines, ...heldLines(held, sums.chargePico, usd), `  price  ${price.join(', ')}`]
}

const labels: Readonly<Record<string, string>> = { cache_write_1h: 'cache write 1h' }

function labelOf(kind: string): string {
  return labels[kind] ?? kind.replaceAll('_', ' ')
}

function rowsOf({ usage, notes }: ExplainedRequest, charge: Charge, sums: ChargeSums): readonly Row[] {
  const { adjustment, writtenOffPico, chargePico } = sums
  const priceWidth = Math.max(...charge.lines.map((line) => line.price_per_million.length), 0)
  const rows: Row[] = charge.lines.map(({ kind, tokens, price_per_million, amount }) => ({
    label: labelOf(kind),
    tokens: shownCount(tokens),
    price: ` × ${`$${price_per_million}`.padStart(priceWidth + 1)} / M`,
    pico: picoOf(amount),
    note: kind === 'output' ? `of which reasoning: ${shownReasoning(usage?.reasoning_tokens)}` : '',
  }))
  const plain = (label: string, pico: bigint, note: string): Row => ({ label, tokens: '', price: '', pico, note })
  if (adjustment) rows.push(plain(adjustment.label, adjustment.pico, ''))
  if (writtenOffPico > 0n) rows.push(plain('written off', -writtenOffPico, 'more than the wallet had'))
  const isImplausible = notes.some((note) => note.includes('implausible usage'))
  const source =
    usage?.source !== 'estimated'
      ? 'usage reported by the provider'
      : `usage estimated: ${isImplausible ? 'see the note' : 'the provider reported none'}`
  return [...rows, plain('charge', chargePico, source)]
}

function shownReasoning(tokens: number | null | undefined): string {
  return tokens == null ? 'not reported' : shownCount(tokens)
}

function heldLines(held: bigint | undefined, spent: bigint, usd: (pico: bigint) => string = usdOf): string[] {
  if (held === undefined) return []
  const rest = spent > held ? `${usd(spent - held)} more was charged than held` : `released ${usd(held - spent)}`
  return [`  held  ${usd(held)};  ${rest}`]
}

/** The charge of a call on the workspace's own key names no price: it is a fee, or nothing. */
function ownKeyLines(request: ExplainedRequest, cost: string, chargePico: bigint) {
  const writtenOffPico = transferPico(request, 'writeoff') ?? 0n
  const lost = writtenOffPico === 0n ? '' : `;  ${usdOf(writtenOffPico)} more than the wallet had was written off`
  const costPico = picoOf(cost)
  // When several processes share a wallet, the caller is quoted the cost before it is known that it cannot be paid.
  const agrees = costPico === chargePico || costPico === chargePico + writtenOffPico
  return {
    lines: [
      `  charge  ${usdOf(chargePico)}      on the workspace's own provider key, without a catalog price${lost}`,
      ...heldLines(request.held === null ? undefined : picoOf(request.held), chargePico),
      ...creditLines(request),
      ...endLines(request),
    ],
    fault: agrees ? undefined : `the transfer is ${usdOf(chargePico)}, not ${usdOf(costPico)}`,
  }
}

/** The credit of plans that paid for the charge. */
function creditLines({ plan_credits: credits }: ExplainedRequest): string[] {
  if (credits.length === 0) return []
  const parts = credits.map(({ plan, period, amount }) => `$${amount} of ${plan} ${period}`)
  return [`  paid from plan credit  ${parts.join(', ')}`]
}

/** How a charged answer ended, unless it succeeded. */
function endLines(request: ExplainedRequest): string[] {
  return request.code === null && request.status !== clientLeftStatus ? [] : [`  ended  ${statusText(request)}`]
}

function statusText({ status, code, reason }: ExplainedRequest): string {
  const left = status === clientLeftStatus ? ', the client left' : ''
  return `${status}${left}${code === null ? '' : ` ${code}`}${reason === null ? '' : `: ${reason}`}`
}

/** The candidates and the attempts. */
function routeLines({ candidates, attempts, code }: ExplainedRequest): string[] {
  const failed = attempts.filter(({ outcome }) => !/^(ok|interrupted)/.test(outcome)).length
  const facts = failed === 0 ? [] : [`${failed} failed`]
  if (code === 'STREAM_INTERRUPTED') facts.push('the last broke off')
  const tried = facts.length === 0 ? 'none failed' : facts.join(', ')
  const planned = candidates.length === 0 ? '' : `candidates ${candidates.length}, `
  const summary = `  ${planned}attempts ${attempts.length}, ${tried}`
  if (candidates.length < 2 && failed === 0) return [summary]
  return [
    summary,
    ...candidates.map(({ provider, upstream_model, why }) => {
      return `    candidate  ${provider} ${upstream_model}${why ? `   ${why}` : ''}`
    }),
    ...attempts.map(({ provider, upstream_model, outcome, ms }) => {
      return `    attempt    ${provider} ${upstream_model}   ${outcome}   ${ms} ms`
    }),
  ]
}

/** `adjustment`: the difference between the lines and the charge, by rounding or by the cap of an estimate. */
function sumCharge(request: ExplainedRequest, { lines, total }: Charge) {
  const totalPico = picoOf(total)
  const sumPico = lines.reduce((sum, { amount }) => sum + picoOf(amount), 0n)
  const adjustment = adjustmentOf(totalPico - sumPico, request.usage?.source === 'estimated')
  /** The amount that the wallet paid. */
  const chargePico = transferPico(request, 'charge') ?? totalPico
  /** The part the wallet could not pay, which the operator lost. */
  const writtenOffPico = transferPico(request, 'writeoff') ?? 0n
  const moved = chargePico + writtenOffPico
  const faults = lines.flatMap(lineFault)
  if (adjustment === 'unexplained') faults.push(`the lines add up to ${usdOf(sumPico)}, not to ${usdOf(totalPico)}`)
  if (moved !== totalPico) faults.push(`the transfers come to ${usdOf(moved)}, not to ${usdOf(totalPico)}`)
  return {
    adjustment: adjustment === 'unexplained' ? undefined : adjustment,
    writtenOffPico,
    chargePico,
    fault: faults[0],
  }
}

type ChargeSums = ReturnType<typeof sumCharge>

/** USD per million tokens times 10⁶ is pico-dollars per token, so a line is checked in integers. */
function lineFault({ kind, tokens, price_per_million: price, amount }: Charge['lines'][number]): string[] {
  const isRight = Number.isInteger(tokens) && (BigInt(tokens) * picoOf(price)) / 1_000_000n === picoOf(amount)
  return isRight ? [] : [`${labelOf(kind)}: ${tokens} × $${price} / M is not ${usdOf(picoOf(amount))}`]
}

function adjustmentOf(pico: bigint, isEstimated: boolean) {
  if (pico === 0n) return undefined
  // Charges are rounded up to nano-dollars.
  if (pico > 0n && pico < 1000n) return { label: 'rounded up', pico }
  return pico < 0n && isEstimated ? { label: 'capped by the hold', pico } : 'unexplained'
}

function transferPico({ transfers }: ExplainedRequest, kind: string): bigint | undefined {
  const transfer = transfers.find((each) => each.kind === kind)
  return transfer && picoOf(transfer.amount)
}

/** `0.000028` → 28 000 000 pico-dollars. */
function picoOf(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(`${whole}${fraction.padEnd(12, '0')}`)
}

/** With at least this many decimals, and as many as needed. */
function usdOf(pico: bigint, decimals = 2): string {
  const [whole, fraction = ''] = formatPico(pico < 0n ? -pico : pico).split('.')
  return `${pico < 0n ? '-' : ''}$${whole}.${fraction.padEnd(decimals, '0')}`
}
