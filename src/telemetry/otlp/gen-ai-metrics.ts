// The two histograms that the conventions ask of whoever calls a model. They exist only where a collector is told of
// them; our own metrics say the same under their own names.

import { totalInputTokens } from '../../kernel/usage.ts'
import { isGeneration, none } from '../metrics/observed-request.ts'
import type { MetricReading } from '../metrics/reading.ts'
import { createRegistry } from '../metrics/registry.ts'
import type { RequestRecord } from '../request-record.ts'
import { genAi, genAiMetrics } from './gen-ai-names.ts'
import { operationOf } from './request-spans.ts'

export interface GenAiMetrics {
  observeRequest(record: RequestRecord): void
  read(): Promise<readonly MetricReading[]>
}

const seriesMax = 400

export function createGenAiMetrics(): GenAiMetrics {
  const registry = createRegistry()
  const names = [genAi.operationName, genAi.providerName, genAi.requestModel]
  const durations = registry.histogram({
    ...genAiMetrics.operationDuration,
    labels: [...names, genAi.errorType],
    keep: [genAi.operationName, genAi.errorType],
    seriesMax,
  })
  const tokens = registry.histogram({
    ...genAiMetrics.tokenUsage,
    labels: [...names, genAi.tokenType],
    keep: [genAi.operationName, genAi.tokenType],
    seriesMax,
  })
  return {
    observeRequest(record) {
      const { usage, model = none, attempts } = record
      // What reached no provider was no operation of a model.
      const provider = attempts.at(-1)?.provider
      if (provider === undefined || !isGeneration(record)) return
      const operation = operationOf(record)
      durations.find(operation, provider, model, record.code ?? '').observe(record.totalMs / 1000)
      if (!usage) return
      tokens.find(operation, provider, model, 'input').observe(totalInputTokens(usage))
      tokens.find(operation, provider, model, 'output').observe(usage.outputTokens)
    },
    read: () => registry.read(),
  }
}
