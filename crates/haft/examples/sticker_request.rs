//! A tool with a form: a user orders stickers through their agent.
//!
//! A tool needs only a name, an input type and `call` (see `word_count.rs`). This one implements
//! every optional method of [`Tool`] once, in the order in which a session calls them, and explains
//! their use. `cargo run --example sticker_request`

use std::{
    any::Any,
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, CallRate, Card, CardSection,
    CheckOutcome, Content, Effects, Haft, ProgressUpdate, RuleMatch, ServiceNeed, Services, Tool,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use serde_json::{Value, json};

/// Orders stickers for the user. Ask the user for missing values; do not invent an address.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    /// The name of the design.
    design: String,
    /// The number of stickers.
    #[schemars(range(min = 1, max = 50))]
    count: u32,
    /// A file with the address, one line each.
    address_file: PathBuf,
    /// Filled in by `complete`: no model writes it, since `reserved` takes it out of the schema.
    #[schemars(skip)]
    customer: Option<String>,
    /// Filled in by `locate`.
    #[serde(skip)]
    shown_file: String,
}

/// A service of the program. Tools get services from the session instead of from globals, so that
/// two sessions in one process can use different shops.
struct Shop {
    designs: Vec<String>,
    customer: String,
    orders: Mutex<Vec<String>>,
}

#[derive(Default)]
struct StickerRequest {
    /// The designs of the shop, set when the tool is created for a session.
    designs: Vec<String>,
}

impl Tool for StickerRequest {
    type Input = Order;
    const NAME: &'static str = "StickerRequest";

    /// The properties of the tool that do not depend on the input.
    fn profile(&self) -> ToolProfile {
        ToolProfile {
            title: Some("Stickers".into()),   // the name that the user sees
            aliases: vec!["Stickers".into()], // other names in rules and filters
            family: "shop".into(),
            search_hint: "order swag laptop".into(), // terms for tool search, if deferred
            access: ToolAccess::Anything,            // an order cannot be undone
            rules: RuleMatch::NameOnly,              // the offered rule is `StickerRequest`
            paths: &["address_file"], // made absolute, restricted to the working directories
            reserved: &["customer"],
            needs: const { &[ServiceNeed::service::<Shop>()] }, // without a shop the tool is not offered
            result_cap: Some(1_000),
            timeout: Some(Duration::from_secs(10)),
            rate: Some(CallRate {
                calls: 3,
                per: Duration::from_secs(60),
            }),
            ..ToolProfile::default()
        }
    }

    /// Returns the tool for this session: here with the designs of the session's shop.
    fn for_session(&self, services: &Services) -> Option<Self> {
        let shop = services.get::<Shop>().ok()?;
        let designs = shop.designs.clone();
        Some(Self { designs })
    }

    /// Returns whether the tool can be used. Called once when the pool is built, so it may take
    /// some time.
    async fn is_enabled(&self) -> bool {
        !self.designs.is_empty()
    }

    /// Returns the description if it depends on the session, so that the doc comment of the input
    /// is not enough.
    fn prompt(&self) -> Option<String> {
        let designs = self.designs.join(", ");
        Some(format!(
            "Orders stickers for the user. Designs: {designs}. Ask the user for missing values."
        ))
    }

    /// Repairs frequent mistakes of models before the input is validated against the schema.
    fn backfill(&self, input: &mut Value) {
        if input["count"].is_null() {
            input["count"] = json!(1);
        }
    }

    /// Adds data that depends on the working directory. Nothing is read from disk. The result is
    /// stored in the input, so that it is computed only once.
    fn set_location(&self, input: &mut Order, cwd: &Path, _home: Option<&Path>) {
        let file = input.address_file.strip_prefix(cwd);
        input.shown_file = file.unwrap_or(&input.address_file).display().to_string();
    }

    /// Returns the resources that the call uses. They determine which calls may run concurrently
    /// and what needs permission. Too many resources cost speed; missing ones cost safety.
    fn effects(&self, input: &Order) -> Effects {
        Effects {
            reads: Effects::reading([input.address_file.clone()]).reads,
            ..Effects::EXCLUSIVE
        }
    }

    /// Returns the parsed form of the input for an engine that knows its type, such as a command
    /// line. This tool has none.
    fn parsed_input(&self, _: &Order) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Adds data that only the session has, before hooks, rules and the user see the call.
    async fn complete_input(&self, input: &Order, cx: &CallContext) -> Option<Value> {
        let shop = cx.services.get::<Shop>().ok()?;
        Some(json!({
            "design": input.design,
            "count": input.count,
            "address_file": input.address_file,
            "customer": shop.customer,
        }))
    }

    /// Validates the input. The model reads the error, so it must explain how to fix the input. The
    /// user is not asked about an invalid call.
    async fn check(&self, input: &Order, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        if !self.designs.contains(&input.design) {
            let designs = self.designs.join(", ");
            return Err(ToolError::Refused(format!(
                "Unknown design {:?}. Choose one of: {designs}.",
                input.design
            )));
        }
        Ok(match input.count > 20 {
            true => CheckOutcome::Ask(format!("{} stickers are a lot", input.count)),
            false => CheckOutcome::Pass,
        })
    }

    /// Returns the tool's own opinion on permission, in addition to rules and mode. An order always
    /// asks, even if all other calls are allowed.
    fn permission(&self, input: &Order, _: &CallContext) -> ToolPermission {
        ToolPermission::Ask(format!("{} stickers are ordered", input.count))
    }

    /// Returns the text that a classifier and the user should check for dangerous content.
    fn classifier_input(&self, input: &Order) -> Option<String> {
        Some(format!("order {} × {}", input.count, input.design))
    }

    /// Returns the preview for the user: the form with the real data. Called only if the user is
    /// asked.
    async fn preview(&self, input: &Order, _: &CallContext) -> Option<Card> {
        let address = std::fs::read_to_string(&input.address_file).ok()?;
        let customer = input.customer.as_deref().unwrap_or("?");
        let form = format!("For {customer}\nTo  {}", address.trim().replace('\n', ", "));
        Some(self.render_use(input)?.with(CardSection::Text(form)))
    }

    /// Runs the call. Only permitted calls get here.
    async fn call(&self, input: &Order, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let path = &input.address_file;
        let address = std::fs::read_to_string(path).map_err(|source| ToolError::Read {
            path: path.clone(),
            source,
        })?;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled); // nothing is ordered yet
        }
        cx.progress.report(ProgressUpdate::Step {
            done: 1,
            total: Some(1),
        });
        let shop = cx.services.get::<Shop>()?;
        let mut orders = shop.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push(format!(
            "{} × {} to {}",
            input.count,
            input.design,
            address.trim()
        ));
        let number = orders.len();
        Ok(ToolOutput::text("ordered").with_structured(json!({"order": number})))
    }

    /// Returns the content that the model reads, if it differs from the text of the output: here it
    /// is built from the structured value.
    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        let number = output.structured.as_ref().map(|value| &value["order"]);
        let number = number.unwrap_or(&Value::Null);
        vec![Content::text(format!("Order {number} is placed."))]
    }

    /// Returns the card of a call that has not run yet, for lists and permission prompts.
    fn render_use(&self, input: &Order) -> Option<Card> {
        let what = format!("{} × {}", input.count, input.design);
        Some(Card::new("Stickers", what).with_summary(format!("to {}", input.shown_file)))
    }

    /// Returns the card of a successful call.
    fn render_result(&self, input: &Order, output: &ToolOutput) -> Option<Card> {
        let number = output.structured.as_ref()?.get("order")?;
        Some(
            self.render_use(input)?
                .with_summary(format!("order {number}")),
        )
    }

    /// Returns the card of a failed call.
    fn render_error(&self, input: &Order, error: &ToolError) -> Option<Card> {
        let card = self.render_use(input)?.with_summary("nothing was ordered");
        Some(card.with(CardSection::Alarm(error.to_string())))
    }

    /// Returns the card of a denied call.
    fn render_rejected(&self, input: &Order, reason: &str) -> Option<Card> {
        let card = self.render_use(input)?.with_summary("not ordered");
        Some(card.with(CardSection::Muted(reason.to_owned())))
    }
}

/// The user: they see the form and approve small orders.
#[derive(Default)]
struct StickerBuyer(Mutex<Vec<String>>);

impl Approver for StickerBuyer {
    fn ask(&self, asked: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        let form = asked.preview.unwrap_or(asked.card).to_string();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(format!("{form}({})\n", asked.reason));
        let answer = match form.contains("30 ×") {
            true => ApprovalAnswer::Deny {
                reason: Some("ten will do".to_owned()),
            },
            false => ApprovalAnswer::Allow,
        };
        Box::pin(async { answer })
    }
}

/// Makes four orders: a valid one, one of an unknown design, one that the user denies, and one
/// without an address. Returns what the model reads and the user sees of each.
pub(crate) async fn run(dir: &Path) -> Result<String, Box<dyn Error>> {
    std::fs::write(dir.join("address.txt"), "1 Main Street\nSpringfield\n")?;
    let user = Arc::new(StickerBuyer::default());
    let shop = Arc::new(Shop {
        designs: vec!["crab".to_owned(), "gopher".to_owned()],
        customer: "Ann".to_owned(),
        orders: Mutex::default(),
    });
    let mut haft = Haft::builder(dir)
        .tool(StickerRequest::default())
        .service(Arc::clone(&shop))
        .approver(Arc::<StickerBuyer>::clone(&user))
        .build()
        .await?;
    let mut text = String::new();
    for input in [
        json!({"design": "crab", "address_file": "address.txt"}),
        json!({"design": "snake", "count": 2, "address_file": "address.txt"}),
        json!({"design": "gopher", "count": 30, "address_file": "address.txt"}),
        json!({"design": "gopher", "count": 2, "address_file": "none.txt"}),
    ] {
        let finished = haft.call("StickerRequest", input).await;
        text += &format!("model: {}\n{}\n", finished.text(), finished.card);
    }
    let seen = user.0.lock().unwrap_or_else(PoisonError::into_inner);
    text += &format!("The user was asked:\n{}", seen.join("\n"));
    let orders = shop.orders.lock().unwrap_or_else(PoisonError::into_inner);
    text += &format!("\nThe shop has: {}\n", orders.join("; "));
    Ok(text)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("haft-stickers-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    print!("{}", run(&dir).await?);
    Ok(std::fs::remove_dir_all(&dir)?)
}
