// Why a URL of a tenant's is not called. An expected outcome, so it is returned; an Error, so that the one place that
// dials can reject with it like any call that never became a response.

export type EgressRefusalReason = 'url' | 'scheme' | 'port' | 'unresolved' | 'address'

export class EgressRefusal extends Error {
  override readonly name: string = 'EgressRefusal'
  /** Where the runtime has its codes; nothing was sent. */
  readonly code = 'EGRESS_REFUSED'

  /** `message` is for the tenant, to follow the name of the field; `detail` for the operator's log alone. */
  constructor(
    readonly reason: EgressRefusalReason,
    message: string,
    readonly detail: string = message,
  ) {
    super(message)
  }
}
