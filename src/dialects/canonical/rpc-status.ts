// What Google adds to its errors whatever the dialect, Claude on Vertex among them: a word for the status beside the
// number (google.rpc.Status), and details, of which one may tell a finer reason and one how long to wait.

import { recordOf, textOf, wordOf } from './json-value.ts'

/** As in wire/retry-after.ts: who asks for more gets this, and is not taken for one who asked for nothing. */
const waitMaxMs = 24 * 60 * 60 * 1000

/** `RESOURCE_EXHAUSTED`; others write `error` there, which tells nothing. */
export function statusWordOf({ status }: Readonly<Record<string, unknown>>): string | undefined {
  return /^[A-Z]+(_[A-Z]+)*$/.test(wordOf(status) ?? '') ? wordOf(status) : undefined
}

export function reasonIn(details: unknown): string | undefined {
  return wordOf(detailOf(details, 'google.rpc.ErrorInfo').reason) || undefined
}

/** `{"retryDelay": "34.07s"}`, the JSON form of a duration. */
export function retryDelayMs(details: unknown): number | undefined {
  const { retryDelay } = detailOf(details, 'google.rpc.RetryInfo')
  const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(textOf(retryDelay)) ?? []
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), waitMaxMs)
}

function detailOf(details: unknown, type: string): Record<string, unknown> {
  const list: unknown[] = Array.isArray(details) ? details : []
  return recordOf(list.find((detail) => textOf(recordOf(detail)['@type']).endsWith(`/${type}`)))
}
