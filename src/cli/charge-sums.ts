// Adds up a charge as the gateway explains it, in pico-dollars, and finds what stands between the lines and what was paid.
// It trusts no sum it was told: one that does not hold is the first thing the reader must see.

import { type JsonObject, numberAt, objectOf, objectsOf, textAt } from './json-members.ts'

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
  /** Between the lines and the price of the request: rounding, or an estimate that is capped by its hold. */
  readonly adjustment: { readonly label: string; readonly pico: bigint } | undefined
  /** What the operator lost because the wallet could not pay it. */
  readonly writtenOffPico: bigint
  /** What the wallet paid. */
  readonly chargePico: bigint
  /** What does not add up; undefined = everything does. */
  readonly fault: string | undefined
}

const picoPerNano = 1000n
const labels: Readonly<Record<string, string>> = { cache_write_1h: 'cache write 1h' }

/** undefined where nothing was charged by a price. */
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
 * Of a call on the workspace's own key, whose transfer names no price: what was paid, which is nothing, or a fee from
 * before fees had versions. undefined = it was no such call, or there is no charge.
 */
export function ownKeyCharge(request: JsonObject): OwnKeyCharge | undefined {
  const costPico = picoOf(textAt(request, 'cost'))
  const chargePico = transferPico(request, 'charge')
  if (costPico === undefined || chargePico === undefined || textAt(request, 'price_version') !== undefined) {
    return undefined
  }
  const writtenOffPico = transferPico(request, 'writeoff') ?? 0n
  // Where several processes share a wallet, the caller is told the cost before anyone knows that it cannot be paid.
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

/** USD per million tokens is pico-dollars per token with six decimals moved, so a line is checked in integers. */
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

/** With so many decimals; undefined = as many as it takes, at least two. */
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
