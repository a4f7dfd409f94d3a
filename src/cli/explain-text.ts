// Lays out one charge for people: what was used at which price, what was paid, what was held, and why it went where it
// went. All amounts have the same number of decimals, so that a column can be added up by eye.

import {
  type ChargeSums,
  decimalsOf,
  type OwnKeyCharge,
  ownKeyCharge,
  picoOf,
  sumCharge,
  usdOf,
} from './charge-sums.ts'
import { type JsonObject, numberAt, objectOf, objectsOf, shownAt, textAt } from './json-members.ts'
import { shownCount } from './shown-values.ts'
import { cleanText } from './table.ts'

/** Of a label and its tokens; keeps most explanations alike. */
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
  /** `120`, or empty where a row counts no tokens. */
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

/** How an answer that was charged ended, unless it ended well. */
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

/** Where it could have gone, and what was tried. */
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
