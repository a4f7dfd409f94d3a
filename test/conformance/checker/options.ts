// The arguments of `npm run conformance`, and its help.

import { nearestNames } from '../../../src/kernel/nearest.ts'
import type { DialectName } from './probe.ts'

export interface ConformanceOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** undefined: both, as far as they are served. */
  readonly dialect: DialectName | undefined
  /** undefined: the only one there is. */
  readonly model: string | undefined
  readonly json: boolean
}

export const conformanceHelp = `conformance: checks whether an endpoint speaks its dialect the way official clients need it

Usage
  npm run conformance -- --base-url URL [--api-key KEY] [--dialect chat|messages] [--model ID] [--json]

  --base-url URL     any endpoint, as an official client would be configured:
                     http://127.0.0.1:8080, https://api.openai.com/v1, https://api.anthropic.com
  --api-key KEY      sent the way the dialect's clients send it
  --dialect NAME     chat (OpenAI Chat Completions) or messages (Anthropic Messages); both by default
  --model ID         a model with tools; required unless there is only one
  --json             the result as JSON

Sends about 15 small requests per dialect; a provider charges for them. Ends with 0 if every check passed,
1 if one failed, 2 if the arguments are wrong.

Try it
  npm run conformance -- --base-url http://127.0.0.1:8080 --api-key "$(cat data/first-key)" --model sandbox/tools
`

const names = ['--base-url', '--api-key', '--dialect', '--model'] as const

/** The options, or what is wrong with them. */
export function readConformanceOptions(args: readonly string[]): ConformanceOptions | { readonly fault: string } {
  const values = new Map<string, string>()
  let json = false
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    const cut = arg.startsWith('--') ? arg.indexOf('=') : -1
    const name = cut === -1 ? arg : arg.slice(0, cut)
    if (arg === '--json') json = true
    else if (!(names as readonly string[]).includes(name)) return unknown(name)
    else {
      const value = cut === -1 ? args[++at] : arg.slice(cut + 1)
      if (value === undefined || value === '') return { fault: `${name} needs a value` }
      if (values.has(name)) return { fault: `${name} is given twice` }
      values.set(name, value)
    }
  }
  const baseUrl = values.get('--base-url')
  if (baseUrl === undefined) return { fault: '--base-url is missing, as in --base-url http://127.0.0.1:8080' }
  if (!/^https?:\/\/\S+$/i.test(baseUrl) || !URL.canParse(baseUrl) || /[?#]/.test(baseUrl)) {
    return { fault: `--base-url must be an address that starts with http:// or https://, not ${baseUrl}` }
  }
  const dialect = values.get('--dialect')
  if (dialect !== undefined && dialect !== 'chat' && dialect !== 'messages') {
    return { fault: `--dialect must be chat or messages, not ${dialect}` }
  }
  const address = baseUrl.replace(/\/+$/, '')
  return { baseUrl: address, apiKey: values.get('--api-key'), dialect, model: values.get('--model'), json }
}

function unknown(name: string): { fault: string } {
  const near = nearestNames(name, [...names, '--json'], 1)[0]
  return { fault: `"${name}" is not understood${near === undefined ? '' : ` (did you mean ${near}?)`}` }
}
