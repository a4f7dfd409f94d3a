// Lays out one charge: what was used at which price, what was paid and held, and why it went where it went. It recomputes
// every sum in pico-dollars and reports one that does not hold. All amounts have the same number of decimals.

import { type JsonObject, numberAt, objectOf, objectsOf, shownAt, textAt } from './json-members.ts'
import { cleanText, shownCount } from './table.ts'

/** Minimum width of a label and its tokens, so that most explanations look alike. */
const leftWidthLeast = 20
const clientLeftStatus = 499

export interface Explanation {
  readonly text: string
  /** What does not add up. */
  readonly fault: string | undefined
}

export function explainText(request: JsonObject): Explanation {
  const sums = sumCharge(request)
  const own = sums === undefined ? ownKeyCharge(request) : undefined
  const lines = [
    headLine(request, sums),
    ...bodyLines(request, sums, own),
    ...noteLines(request),
    ...routeLines(request),
  ]
  return { text: `${lines.map(cleanText).join('\n')}\n`, fault: sums?.fault ?? own?.fault }
}

function bodyLines(request: JsonObject, sums: ChargeSums | undefined, own: OwnKeyCharge | undefined): string[] {
  if (sums !== undefined) return [...chargedLines(request, sums), ...endLines(request)]
  if (own !== undefined) return [...ownKeyLines(request, own), ...endLines(request)]
  return unchargedLines(request)
}

/** What was odd about the provider's reply. */
function noteLines({ notes }: JsonObject): string[] {
  return Array.isArray(notes) ? notes.map((note) => `  note  ${String(note)}`) : []
}

function headLine(request: JsonObject, sums: ChargeSums | undefined): string {
  const attempts = objectsOf(request.attempts).length
  const provider = textAt(request, 'provider')
  const transfer = objectsOf(request.transfers).find((each) => textAt(each, 'kind') === 'charge')
  const parts = [
    shownAt(request, 'id'),
    textAt(request, 'model') ?? shownAt(request, 'path'),
    provider === undefined ? 'no provider' : `via ${provider}`,
    `${attempts} attempt${attempts === 1 ? '' : 's'}`,
    transfer === undefined && sums === undefined ? 'not charged' : 'settled',
    ...(transfer === undefined ? [] : [shownAt(transfer, 'id')]),
  ]
  return parts.join('   ')
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

function chargedLines(request: JsonObject, sums: ChargeSums): string[] {
  const isImplausible = noteLines(request).some((line) => line.includes('implausible usage'))
  const rows = rowsOf(objectOf(request.usage), sums, isImplausible)
  const held = picoOf(textAt(request, 'held'))
  const decimals = Math.max(...[...rows.map(({ pico }) => pico), held ?? 0n].map(decimalsOf))
  const usd = (pico: bigint): string => usdOf(pico, decimals)
  const widest = (width: (row: Row) => number): number => Math.max(...rows.map(width))
  const left = Math.max(
    leftWidthLeast,
    widest(({ label, tokens }) => label.length + tokens.length + 1),
  )
  const middle = widest(({ price }) => price.length)
  const amount = widest(({ pico }) => usd(pico).length)
  const lines = rows.map(({ label, tokens, price, pico, note }) => {
    const counted = `${label}${tokens.padStart(left - label.length)}${price.padEnd(middle)}`
    return `  ${counted}    ${usd(pico).padStart(amount)}      ${note}`.trimEnd()
  })
  const heldLines = held === undefined ? [] : [heldLine(held, sums.chargePico, usd)]
  return [...lines, ...heldLines, priceLine(objectOf(request.charge))]
}

function rowsOf(usage: JsonObject, sums: ChargeSums, isImplausible: boolean): readonly Row[] {
  const { lines, adjustment, writtenOffPico, chargePico } = sums
  const priceWidth = Math.max(...lines.map(({ price }) => price.length), 0)
  const rows: Row[] = lines.map(({ label, tokens, price, pico }) => ({
    label,
    tokens: shownCount(tokens),
    price: ` × ${`$${price}`.padStart(priceWidth + 1)} / M`,
    pico,
    note: label === 'output' ? reasoningNote(usage) : '',
  }))
  const plain = (label: string, pico: bigint, note: string): Row => ({ label, tokens: '', price: '', pico, note })
  if (adjustment) rows.push(plain(adjustment.label, adjustment.pico, ''))
  if (writtenOffPico > 0n) rows.push(plain('written off', -writtenOffPico, 'more than the wallet had'))
  return [...rows, plain('charge', chargePico, sourceNote(usage, isImplausible))]
}

function priceLine(charge: JsonObject): string {
  const since = textAt(charge, 'price_effective_from')
  const parts = [
    shownAt(charge, 'price_version'),
    textAt(charge, 'price_source'),
    since && `since ${since.slice(0, 10)}`,
  ]
  return `  price  ${parts.filter((part) => part !== undefined).join(', ')}`
}

function heldLine(held: bigint, spent: bigint, usd: (pico: bigint) => string = usdOf): string {
  return spent > held
    ? `  held  ${usd(held)};  ${usd(spent - held)} more was charged than held`
    : `  held  ${usd(held)};  released ${usd(held - spent)}`
}

function reasoningNote(usage: JsonObject): string {
  const reasoning = numberAt(usage, 'reasoning_tokens')
  return `of it reasoning: ${reasoning === undefined ? 'not reported' : shownCount(reasoning)}`
}

function sourceNote(usage: JsonObject, isImplausible: boolean): string {
  if (textAt(usage, 'source') !== 'estimated') return 'usage reported by the provider'
  return isImplausible ? 'usage estimated: see the note' : 'usage estimated: the provider reported none'
}

function ownKeyLines(request: JsonObject, { chargePico, writtenOffPico }: OwnKeyCharge): string[] {
  const held = picoOf(textAt(request, 'held'))
  const lost = writtenOffPico === 0n ? '' : `;  ${usdOf(writtenOffPico)} more than the wallet had was written off`
  return [
    `  charge  ${usdOf(chargePico)}      on the workspace's own key, by no price of the catalog${lost}`,
    ...(held === undefined ? [] : [heldLine(held, chargePico)]),
  ]
}

/** How a charged answer ended, unless it succeeded. */
function endLines(request: JsonObject): string[] {
  const hasLeft = numberAt(request, 'status') === clientLeftStatus
  return textAt(request, 'code') === undefined && !hasLeft ? [] : [`  ended  ${statusText(request)}`]
}

function statusText(request: JsonObject): string {
  const [code, reason] = [textAt(request, 'code'), textAt(request, 'reason')]
  const left = numberAt(request, 'status') === clientLeftStatus ? ', the client left' : ''
  return `${shownAt(request, 'status')}${left}${code === undefined ? '' : ` ${code}`}${reason === undefined ? '' : `: ${reason}`}`
}

function unchargedLines(request: JsonObject): string[] {
  const cost = textAt(request, 'cost')
  const held = textAt(request, 'held')
  return [
    `  charge  ${cost === undefined ? 'none' : `$${cost}`}      ${statusText(request)}`,
    ...(held === undefined ? [] : [`  held  $${held};  released $${held}`]),
  ]
}

/** The candidates and the attempts. */
export function routeLines(request: JsonObject): string[] {
  const candidates = objectsOf(request.candidates)
  const attempts = objectsOf(request.attempts)
  const failed = attempts.filter((attempt) => !/^(ok|interrupted)/.test(shownAt(attempt, 'outcome'))).length
  const facts = failed === 0 ? [] : [`${failed} failed`]
  if (textAt(request, 'code') === 'STREAM_INTERRUPTED') facts.push('the last broke off')
  const tried = facts.length === 0 ? 'none failed' : facts.join(', ')
  const planned = candidates.length === 0 ? '' : `candidates ${candidates.length}, `
  const lines = [`  ${planned}attempts ${attempts.length}, ${tried}`]
  if (candidates.length < 2 && failed === 0) return lines
  for (const candidate of candidates) {
    const why = textAt(candidate, 'why')
    lines.push(`    candidate  ${routeName(candidate)}${why === undefined ? '' : `   ${why}`}`)
  }
  for (const attempt of attempts) {
    lines.push(`    attempt    ${routeName(attempt)}   ${shownAt(attempt, 'outcome')}   ${shownAt(attempt, 'ms')} ms`)
  }
  return lines
}

function routeName(route: JsonObject): string {
  return `${shownAt(route, 'provider')} ${shownAt(route, 'upstream_model')}`
}

export interface SumLine {
  /** `input`, `cache read`, … */
  readonly label: string
  readonly tokens: number
  /** USD per million tokens, decimal. */
  readonly price: string
  readonly pico: bigint
}

export interface ChargeSums {
  readonly lines: readonly SumLine[]
  /** The difference between the lines and the charge: rounding, or an estimate capped by its hold. */
  readonly adjustment: { readonly label: string; readonly pico: bigint } | undefined
  /** The part the wallet could not pay, which the operator lost. */
  readonly writtenOffPico: bigint
  /** What the wallet paid. */
  readonly chargePico: bigint
  /** What does not add up; undefined = everything does. */
  readonly fault: string | undefined
}

const picoPerNano = 1000n
const labels: Readonly<Record<string, string>> = { cache_write_1h: 'cache write 1h' }

/** undefined if nothing was charged by a price. */
export function sumCharge(request: JsonObject): ChargeSums | undefined {
  const charge = objectOf(request.charge)
  const totalPico = picoOf(textAt(charge, 'total'))
  if (totalPico === undefined) return undefined
  const lines = objectsOf(charge.lines).map(sumLine)
  const sumPico = lines.reduce((sum, { pico }) => sum + pico, 0n)
  const isEstimated = textAt(objectOf(request.usage), 'source') === 'estimated'
  const adjustment = adjustmentOf(totalPico - sumPico, isEstimated)
  const paid = (kind: string) => transferPico(request, kind)
  const [chargePico, writtenOffPico] = [paid('charge') ?? totalPico, paid('writeoff') ?? 0n]
  return {
    lines,
    adjustment: adjustment === 'unexplained' ? undefined : adjustment,
    writtenOffPico,
    chargePico,
    fault:
      lineFault(charge) ??
      (adjustment === 'unexplained'
        ? `the lines add up to ${usdOf(sumPico)}, not to ${usdOf(totalPico)}`
        : undefined) ??
      (chargePico + writtenOffPico === totalPico
        ? undefined
        : `the transfers come to ${usdOf(chargePico + writtenOffPico)}, not to ${usdOf(totalPico)}`),
  }
}

export interface OwnKeyCharge {
  readonly chargePico: bigint
  readonly writtenOffPico: bigint
  readonly fault: string | undefined
}

/**
 * The charge of a call on the workspace's own key, whose transfer names no price: nothing, or a fee from before fees had
 * versions. undefined = not such a call, or no charge.
 */
export function ownKeyCharge(request: JsonObject): OwnKeyCharge | undefined {
  const costPico = picoOf(textAt(request, 'cost'))
  const chargePico = transferPico(request, 'charge')
  if (costPico === undefined || chargePico === undefined || textAt(request, 'price_version') !== undefined) {
    return undefined
  }
  const writtenOffPico = transferPico(request, 'writeoff') ?? 0n
  // When several processes share a wallet, the caller is quoted the cost before it is known that it cannot be paid.
  const agrees = costPico === chargePico || costPico === chargePico + writtenOffPico
  const fault = agrees ? undefined : `the transfer is ${usdOf(chargePico)}, not ${usdOf(costPico)}`
  return { chargePico, writtenOffPico, fault }
}

function sumLine(line: JsonObject): SumLine {
  const kind = textAt(line, 'kind') ?? '?'
  return {
    label: labels[kind] ?? kind.replaceAll('_', ' '),
    tokens: numberAt(line, 'tokens') ?? 0,
    price: textAt(line, 'price_per_million') ?? '?',
    pico: picoOf(textAt(line, 'amount')) ?? 0n,
  }
}

/** USD per million tokens times 10⁶ is pico-dollars per token, so a line is checked in integers. */
function lineFault(charge: JsonObject): string | undefined {
  for (const { label, tokens, price, pico } of objectsOf(charge.lines).map(sumLine)) {
    const perMillion = picoOf(price)
    if (perMillion !== undefined && Number.isInteger(tokens) && (BigInt(tokens) * perMillion) / 1_000_000n === pico)
      continue
    return `${label}: ${tokens} × $${price} / M is not ${usdOf(pico)}`
  }
  return undefined
}

function adjustmentOf(pico: bigint, isEstimated: boolean): ChargeSums['adjustment'] | 'unexplained' {
  if (pico === 0n) return undefined
  if (pico > 0n && pico < picoPerNano) return { label: 'rounded up', pico }
  return pico < 0n && isEstimated ? { label: 'capped by the hold', pico } : 'unexplained'
}

function transferPico(request: JsonObject, kind: string): bigint | undefined {
  const transfer = objectsOf(request.transfers).find((each) => textAt(each, 'kind') === kind)
  return transfer && picoOf(textAt(transfer, 'amount'))
}

/** `0.000028` → 28 000 000 pico-dollars; undefined if it is not such a decimal. */
export function picoOf(text: string | undefined): bigint | undefined {
  const match = /^([0-9]+)(?:\.([0-9]{1,12}))?$/.exec(text ?? '')
  return match ? BigInt(`${match[1]}${(match[2] ?? '').padEnd(12, '0')}`) : undefined
}

/** With this many decimals; undefined = as many as needed, at least two. */
export function usdOf(pico: bigint, decimals?: number): string {
  const digits = (pico < 0n ? -pico : pico).toString().padStart(13, '0')
  const fraction = digits.slice(-12).slice(0, decimals ?? decimalsOf(pico))
  return `${pico < 0n ? '-' : ''}$${digits.slice(0, -12)}.${fraction}`
}

/** How many decimals an amount needs, at least two. */
export function decimalsOf(pico: bigint): number {
  const digits = (pico < 0n ? -pico : pico).toString().padStart(13, '0').slice(-12)
  return Math.max(2, digits.replace(/0+$/, '').length)
}
