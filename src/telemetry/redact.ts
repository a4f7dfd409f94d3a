// Replaces secrets and personal data in texts before they leave the gateway: keys of well-known forms, e-mail addresses and
// card numbers. It finds what has a recognisable form and nothing else; it is no proof that a text is harmless.

import type { RedactionRule } from '../kernel/content-export.ts'

/** The longest text that one rule replaces, except a private key, which may also end with the text. */
export const redactedMax = 4096

const replacements: Readonly<Record<RedactionRule, (text: string) => string>> = {
  keys: (text) => keyPatterns.reduce((left, pattern) => left.replace(pattern, '[redacted key]'), text),
  emails: (text) => (text.includes('@') ? text.replace(emailPattern, '[redacted e-mail]') : text),
  cards: (text) => text.replace(digitsPattern, redactCards),
}

export function redact(text: string, rules: readonly RedactionRule[]): string {
  return rules.reduce((left, rule) => replacements[rule](left), text)
}

/** All strings in a value of JSON, names of members included. */
export function redactJson(value: unknown, rules: readonly RedactionRule[]): unknown {
  if (typeof value === 'string') return redact(value, rules)
  // A card number may be written as a number.
  if (typeof value === 'number') {
    const text = String(value)
    const shown = redact(text, rules)
    return shown === text ? value : shown
  }
  if (Array.isArray(value)) return value.map((each) => redactJson(each, rules))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [redact(name, rules), redactJson(member, rules)]),
  )
}

/** Each begins with characters that its issuer chose so that scanners find it. */
const keyPatterns: readonly RegExp[] = [
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  // OpenAI, Anthropic, OpenRouter, DeepSeek, Tollgate.
  /(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,512}/g,
  // Stripe.
  /(?<![A-Za-z0-9])[srp]k_(?:live|test)_[A-Za-z0-9]{16,512}/g,
  /(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/]{24,512}={0,2}/g,
  // GitHub, GitLab, npm, Hugging Face, Slack, Groq, xAI.
  /(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|npm_|hf_|xox[abeoprs]-|gsk_|xai-)[A-Za-z0-9_-]{16,512}/g,
  // AWS, Google.
  /(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g,
  /(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}/g,
  // JSON Web Tokens.
  /(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,2048}\.eyJ[A-Za-z0-9_-]{4,2048}\.[A-Za-z0-9_-]{0,1024}/g,
  /(?<=\bBearer\s)[A-Za-z0-9._~+/-]{16,1024}={0,2}/gi,
]

const emailPattern = /[\p{L}\p{N}._%+'-]{1,64}@(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24}/gu

/** Groups of digits, separated by a space or a hyphen at most. */
const digitsPattern = /(?<!\d)\d(?:[ -]?\d){12,200}(?!\d)/g
const cardDigitsMin = 13
const cardDigitsMax = 19

/** A card number is whole groups of the run: in `order 12 4111 1111 1111 1111` it is the last four. */
function redactCards(run: string): string {
  const groups = [...run.matchAll(/\d+/g)]
  for (let from = 0; from < groups.length; from++) {
    let digits = ''
    for (let to = from; to < groups.length && digits.length < cardDigitsMax; to++) {
      digits += groups[to]?.[0] ?? ''
      if (!isCardNumber(digits)) continue
      const start = groups[from]?.index ?? 0
      const end = (groups[to]?.index ?? 0) + (groups[to]?.[0].length ?? 0)
      return `${run.slice(0, start)}[redacted card]${redactCards(run.slice(end))}`
    }
  }
  return run
}

/** By its first digit, which says what kind of issuer, its length, and its check digit (Luhn, ISO/IEC 7812-1). */
function isCardNumber(digits: string): boolean {
  if (digits.length < cardDigitsMin || digits.length > cardDigitsMax || !/^[2-6]/.test(digits)) return false
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const doubled = at % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
