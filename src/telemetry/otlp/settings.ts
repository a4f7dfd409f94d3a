// Where telemetry is sent, from the variables that every OpenTelemetry program knows. What is wrong in them is told and
// left out: observing must never be what keeps a gateway from starting.

import { Secret } from '../../kernel/secret.ts'

/** As the environment has them; config/ reads it. */
export interface OtlpVariables {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined
  /** Usually holds a token. */
  readonly OTEL_EXPORTER_OTLP_HEADERS?: Secret | undefined
  readonly OTEL_SERVICE_NAME?: string | undefined
  readonly OTEL_TRACES_SAMPLER_ARG?: string | undefined
}

export interface OtlpSettings {
  /** Without a slash at the end; `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, Secret>>
  readonly serviceName: string
  /** The share of traces that begin here and are kept; a caller's own decision is followed. */
  readonly sampleRatio: number
}

export interface OtlpReading {
  /** undefined = nothing is sent. */
  readonly settings: OtlpSettings | undefined
  /** What was left out, a sentence each, without any value. */
  readonly faults: readonly string[]
}

export function readOtlpSettings(variables: OtlpVariables): OtlpReading {
  const endpoint = variables.OTEL_EXPORTER_OTLP_ENDPOINT
  if (endpoint === undefined) return { settings: undefined, faults: [] }
  const protocol = URL.parse(endpoint)?.protocol
  if (protocol !== 'http:' && protocol !== 'https:') {
    const fault = 'OTEL_EXPORTER_OTLP_ENDPOINT is ignored: expected an address such as http://collector:4318'
    return { settings: undefined, faults: [fault] }
  }
  const faults: string[] = []
  const headers = readHeaders(variables.OTEL_EXPORTER_OTLP_HEADERS, faults)
  const ratioText = variables.OTEL_TRACES_SAMPLER_ARG
  const ratio = ratioText === undefined ? 1 : Number(ratioText)
  const isRatio = ratio >= 0 && ratio <= 1 && ratioText?.trim() !== ''
  if (!isRatio) faults.push('OTEL_TRACES_SAMPLER_ARG is ignored: expected a number from 0 to 1')
  const settings = {
    endpoint: endpoint.replace(/\/+$/, ''),
    headers,
    serviceName: variables.OTEL_SERVICE_NAME ?? 'tollgate',
    sampleRatio: isRatio ? ratio : 1,
  }
  return { settings, faults }
}

/** `name=value,name=value`, values percent-encoded. */
function readHeaders(text: Secret | undefined, faults: string[]): Readonly<Record<string, Secret>> {
  const headers: Record<string, Secret> = {}
  for (const [at, pair] of (text?.reveal() ?? '').split(',').entries()) {
    if (pair.trim() === '') continue
    const cut = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, cut)).trim().toLowerCase()
    const value = decoded(pair.slice(cut + 1).trim())
    const isSendable = /^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name) && value !== undefined && /^[\t -~]*$/.test(value)
    if (isSendable) headers[name] = new Secret(value)
    else faults.push(`entry ${at + 1} of OTEL_EXPORTER_OTLP_HEADERS is ignored: expected name=value`)
  }
  return headers
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
