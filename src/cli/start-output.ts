// Prints what a start reports: on a terminal everything needed for the first call, otherwise log lines on stdout. Secrets
// are printed once, at the first start; with the JSON log they go to stderr as plain text.

import { sandboxId } from '../providers/sandbox/transport.ts'
import type { LogFields } from '../telemetry/log.ts'
import { counted } from './values.ts'

export interface StartFacts {
  readonly version: string
  /** Where it listens. */
  readonly url: string
  /** `server.public_url`: what browsers and clients use. undefined = where it listens; for a wildcard, loopback. */
  readonly publicUrl: string | undefined
  /** Whether a proxy in front is configured: a public https:// address, or trusted proxies. */
  readonly isBehindProxy: boolean
  readonly dataFolder: string
  readonly engine: 'sqlite' | 'postgres'
  /** Only at the first start. */
  readonly first:
    | {
        readonly key: string
        readonly keyFile: string
        /** Path of a link that signs a browser in once. */
        readonly signInPath: string
        /** Decimal USD in the wallet of the first workspace. */
        readonly openingCredit: string
      }
    | undefined
  /** How a shell reads a key at later starts: `$(cat ./data/first-key)`, or `$TOLLGATE_KEY` if that file is gone. */
  readonly keyReference: string
  /** A variable or a file, never the token. */
  readonly managementToken: string
  /** `offline`: answers inside this process. */
  readonly providersOn: readonly {
    readonly id: string
    readonly source: string
    readonly models: number
    readonly offline: boolean
  }[]
  /** Built-in providers whose variable is not set. */
  readonly providersOff: readonly { readonly id: string; readonly variable: string }[]
}

export function prettyStart(facts: StartFacts): string {
  const { first } = facts
  const url = usedAddress(facts)
  const store = facts.engine === 'sqlite' ? `data ${facts.dataFolder} (SQLite)` : 'PostgreSQL'
  const lines = [`tollgate ${facts.version}   ${store}${first ? '   first start' : ''}`, '']
  const link = first
    ? `${url}${first.signInPath}    one-time link, valid 15 minutes`
    : `${url}/console    new sign-in link: npx tollgate console`
  lines.push(`  Console     ${link}`, `  Catalog     ${url}/`)
  lines.push(`  OpenAI      ${url}/v1    Chat Completions, Responses, Embeddings`)
  lines.push(`  Anthropic   ${url}`, `  Gemini      ${url}`)
  if (first) lines.push(`  API key     ${first.key}      shown this once; also in ${first.keyFile} (0600)`)
  lines.push(`  Management  token in ${facts.managementToken}`)
  if (first) lines.push(`  Wallet      $${first.openingCredit} opening credit, workspace "default"`)
  lines.push('', ...providerLines(facts), '')
  lines.push(`  Try it      ${curlParts(facts, first?.key ?? facts.keyReference).join(' \\\n                ')}`)
  if (first) {
    lines.push('  Connect     npx tollgate connect claude | cline | opencode …        Stop  Ctrl-C')
  }
  lines.push('')
  const warning = plainHttpWarning(facts)
  if (warning !== undefined) lines.push(`warning: ${warning}`, '')
  lines.push(`listening on ${facts.url}`, '')
  return lines.join('\n')
}

export interface StartLine {
  readonly level: 'info' | 'warn'
  readonly message: string
  readonly fields: LogFields
}

/** For stderr, beside the JSON log: the secrets of the first start, which no log may contain. */
export function firstStartNotice(facts: StartFacts): string {
  const { first } = facts
  if (!first) return ''
  const lines = [
    `API key ${first.key}   shown this once; also in ${first.keyFile} (0600)`,
    `Console ${usedAddress(facts)}${first.signInPath}   one-time link, valid 15 minutes`,
    `Management token in ${facts.managementToken}`,
    `Try it: ${curlParts(facts, first.key).join(' ')}`,
  ]
  return lines.map((line) => `tollgate: first start: ${line}\n`).join('')
}

/** Free of secrets, because logs are collected and stored. */
export function startLogLines(facts: StartFacts): readonly StartLine[] {
  const { url, first } = facts
  const lines: StartLine[] = []
  if (first) {
    lines.push({
      level: 'info',
      message: 'first start: the API key is in the file, and on stderr with a sign-in link to the console',
      fields: {
        file: first.keyFile,
        console: `${usedAddress(facts)}/console`,
        opening_credit: first.openingCredit,
        curl: curlParts(facts, facts.keyReference).join(' '),
      },
    })
  }
  for (const { id, source, models } of facts.providersOn) {
    lines.push({ level: 'info', message: 'provider on', fields: { provider: id, source, models } })
  }
  const warning = plainHttpWarning(facts)
  if (warning !== undefined) lines.push({ level: 'warn', message: warning, fields: {} })
  lines.push({
    level: 'info',
    message: `listening on ${url}`,
    fields: {
      url,
      version: facts.version,
      engine: facts.engine,
      management_token: facts.managementToken,
    },
  })
  return lines
}

/** Only the two best known; the full list would be too long. */
const offNamedMax = 2

function providerLines({ providersOn, providersOff }: StartFacts): string[] {
  const lines = providersOn.map(({ id, source, models, offline }) => {
    return `✓ ${id.padEnd(12)} ${counted(models, 'model')}, ${offline ? 'offline' : `key from ${source} (not tested)`}`
  })
  if (providersOff.length > 0) {
    const named = providersOff.slice(0, offNamedMax).map(({ id, variable }) => `${id} (${variable})`)
    const rest = providersOff.length - named.length
    lines.push(`· off: ${named.join(', ')}${rest > 0 ? ` and ${rest} more: npx tollgate providers` : ''}`)
  }
  return lines.map((line, at) => `  ${(at === 0 ? 'Providers' : '').padEnd(12)}${line}`)
}

function usedAddress({ url, publicUrl }: StartFacts): string {
  return publicUrl ?? reachedAt(url)
}

/** A wildcard address is reached at the loopback address. */
function reachedAt(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** Warns when others can reach the gateway without TLS: keys and prompts are readable on the way. */
function plainHttpWarning({ url, isBehindProxy }: StartFacts): string | undefined {
  const { hostname } = new URL(url)
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
  if (isLoopback || isBehindProxy) return undefined
  return 'others can reach this address, and it speaks plain HTTP: put TLS in front (docs/operate/deploy.md)'
}

/** Paths that a shell would split are quoted. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * The first request as a shell command, in parts that fit on a line; without the sandbox, what can be called. It works on this
 * machine, also before there is a proxy at the public address. `key` is inserted into double quotes, so it may be a command
 * substitution.
 */
function curlParts(facts: StartFacts, key: string): readonly string[] {
  const url = reachedAt(facts.url)
  if (!facts.providersOn.some(({ id }) => id === sandboxId)) {
    return [`curl ${url}/v1/models -H "Authorization: Bearer ${key}"`]
  }
  const body =
    '{"model":"sandbox/echo","stream":true,"messages":[{"role":"user","content":"hello from the other side of the gate"}]}'
  return [
    `curl -N ${url}/v1/chat/completions`,
    `-H "Authorization: Bearer ${key}" -H "Content-Type: application/json"`,
    `-d '${body}'`,
  ]
}
