// GET /metrics, for a Prometheus scraper. It needs the management token, because it shows what each project spends.

import { Failure, retryHeaders } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { Answer, type AnswerHeaders, requestIdHeaders } from '../pipeline/answer.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { chooseFormat, contentTypes, renderExposition } from '../telemetry/exposition.ts'
import type { MetricRegistry } from '../telemetry/metrics.ts'
import { type AuthorizeDependencies, createAuthorize } from './management/authorize.ts'
import { wrongMethod } from './responses.ts'

export interface MetricsRouteDependencies extends Omit<AuthorizeDependencies, 'sessionOf'> {
  readonly registry: Pick<MetricRegistry, 'read'>
}

export const metricsPath = '/metrics'

export function createMetricsRoute({ registry, ...access }: MetricsRouteDependencies) {
  const authorize = createAuthorize(access)
  return async (request: ClientRequest): Promise<Answer> => {
    const actor = await authorize(request)
    if (actor instanceof Failure) return refusal(actor)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refusal(wrongMethod(request.method, 'GET'))
    }
    const format = chooseFormat(request.headers.get('accept'))
    const page = renderExposition(await registry.read(), format)
    return respond(200, page, { 'content-type': contentTypes[format] })
  }
}

/** Plain text: scrapers show the status, people read the message. */
function refusal(failure: Failure): Answer {
  const headers: AnswerHeaders = { 'content-type': 'text/plain', ...retryHeaders(failure) }
  if (failure.status === 401) headers['www-authenticate'] = 'Bearer'
  if (failure.facts.allow !== undefined) headers.allow = failure.facts.allow
  return respond(failure.status, `${failure.message}\n`, headers)
}

function respond(status: number, body: string, headers: AnswerHeaders): Answer {
  return new Answer(status, { ...requestIdHeaders(createId('req')), 'cache-control': 'no-store', ...headers }, body)
}
