// OpenRouter's activity: GET /api/v1/activity with a management key, the last 30 completed UTC days by model and host. Amounts
// are floats in dollars for all tokens of a row together; what workspaces' own keys paid is beside them and not billed.

import type { ApiSource } from './anthropic.ts'
import { type BillLine, type BillReport, type DayRange, dayMs, dayOf, picoOf, quantityOf } from './bill.ts'
import { isObject, type JsonObject, malformed, readPages, textIn } from './fetch-pages.ts'

export const openrouterUrl = 'https://openrouter.ai'
const rights = 'Use a management key; a key for calls cannot read the activity.'
const daysKept = 30

/** All tokens of one side, cached or not. */
export const allInput = 'all_input'
export const allOutput = 'all_output'

export async function readOpenrouterActivity(
  { reader, baseUrl, adminKey }: ApiSource,
  range: DayRange,
  now: number,
): Promise<BillReport> {
  const headers = { authorization: `Bearer ${adminKey}` }
  const { items } = await readPages(reader, { url: `${baseUrl}/api/v1/activity?`, headers, rights })
  const today = now - (now % dayMs)
  const lines = items.flatMap((item): readonly BillLine[] => {
    const row: JsonObject = isObject(item) ? item : {}
    const day = dayOf(textIn(row, 'date'))
    const pico = picoOf(textIn(row, 'usage'), 'usd')
    const counts = ['prompt_tokens', 'completion_tokens', 'requests'].map((name) =>
      quantityOf(textIn(row, name) || '0'),
    )
    const [prompt, completion, requests] = counts
    if (day === undefined || pico === undefined || counts.includes(undefined)) {
      throw malformed(reader, 'has a row without a day, an amount or whole counts')
    }
    if (day < range.from || day >= range.to) return []
    const place = { day, model: textIn(row, 'model'), key: '', tier: '', region: '' }
    return [
      { ...place, bucket: '', quantity: undefined, pico, requests },
      { ...place, bucket: allInput, quantity: prompt, pico: undefined, requests: undefined },
      { ...place, bucket: allOutput, quantity: completion, pico: undefined, requests: undefined },
    ]
  })
  const first = today - daysKept * dayMs
  return {
    lines,
    missing: (day) =>
      day >= today
        ? 'the activity has completed days only'
        : day < first
          ? `the activity goes back ${daysKept} days only`
          : undefined,
  }
}
