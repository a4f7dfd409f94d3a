// The words of providers' bills that the configuration, the database and the management API share.

/** How a provider's bill is read. */
export const billFormats = [
  'anthropic',
  'anthropic-reports',
  'openai',
  'openrouter',
  'replies',
  'focus',
  'csv',
] as const
export type BillFormat = (typeof billFormats)[number]

/** Formats that are files on the gateway's machine. */
export const billFileFormats: ReadonlySet<BillFormat> = new Set(['focus', 'csv'])
/** Formats that are read over the network, with a key for it. */
export const billApiFormats: ReadonlySet<BillFormat> = new Set([
  'anthropic',
  'anthropic-reports',
  'openai',
  'openrouter',
])

/** Why a provider bills another amount than was recorded. */
export const billCauses = {
  failed_attempt: 'Attempts without an answer, which the provider billed',
  cut_answer: 'Answers that were cut short, of which the provider billed more than was read',
  estimated_usage: 'Answers without a usage from the provider, whose tokens were estimated',
  implausible_count: 'Counts that were implausible, and were replaced by an estimate',
  list_price: 'Another list price',
  tier: 'The price of another service tier',
  region: 'The surcharge of a region',
  batch: 'The price of batches',
  midnight: 'Requests around midnight, which the provider counts on the other day',
  outside: 'Traffic that did not pass the gateway',
} as const satisfies Record<string, string>
export type BillCause = keyof typeof billCauses

/** One provider's bill, as the configuration names it. */
export interface BillSource<AdminKey> {
  /** The id of the provider. */
  readonly provider: string
  readonly format: BillFormat
  readonly adminKey: AdminKey | undefined
  /** undefined = the provider's own. */
  readonly baseUrl: string | undefined
  /** The provider's ids of the keys that the gateway uses; undefined = whatever is billed is compared. */
  readonly keys: readonly string[] | undefined
  /** A file or a folder. */
  readonly path: string | undefined
  /** The provider's words for a model or a meter → its model, or `model bucket`. */
  readonly models: Readonly<Record<string, string>>
}
