//! A form-like tool of an embedder: someone at a keyboard orders stickers through their agent.
//!
//! Only a name, an input type and `call` are needed (see `word_count.rs`). This one implements every optional method of
//! [`Tool`] once, in the order in which a session calls them, and says why one would. `cargo run --example sticker_request`

use std::{
    any::Any,
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft::{
    Access, ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, Card, CardPiece,
    Check, Content, Effects, Haft, Permission, Profile, Rate, RuleMatch, ServiceNeed, Services,
    Tool, ToolError, ToolOutput, Update,
};
use serde_json::{Value, json};

/// Orders stickers for the person. Ask them for whatever is missing; do not make an address up.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    /// Which sticker.
    design: String,
    /// How many.
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

/// A service of the program: tools reach what they need through the session, not through globals, so that two sessions
/// in one process can have two shops.
struct Shop {
    designs: Vec<String>,
    customer: String,
    orders: Mutex<Vec<String>>,
}

#[derive(Default)]
struct StickerRequest {
    /// Known once the tool is fitted to a session.
    designs: Vec<String>,
}

impl Tool for StickerRequest {
    type Input = Order;
    const NAME: &'static str = "StickerRequest";

    /// What others need to know of the tool, whatever the input: so that no other file has to name it.
    fn profile(&self) -> Profile {
        Profile {
            title: Some("Stickers".into()),   // the name people see
            aliases: vec!["Stickers".into()], // rules and filters may call it so
            family: "shop".into(),
            search_hint: "order swag laptop".into(), // how a model finds it, were it deferred
            access: Access::Anything,                // an order cannot be taken back
            rules: RuleMatch::NameOnly,              // people are offered the rule `StickerRequest`
            paths: &["address_file"], // made absolute, kept inside the working directories
            reserved: &["customer"],
            needs: const { &[ServiceNeed::of::<Shop>()] }, // no shop, no tool
            result_cap: Some(1_000),
            timeout: Some(Duration::from_secs(10)),
            rate: Some(Rate {
                calls: 3,
                per: Duration::from_secs(60),
            }),
            ..Profile::default()
        }
    }

    /// The tool as this session has it: here the designs come from the session's shop.
    fn for_session(&self, services: &Services) -> Option<Self> {
        let shop = services.get::<Shop>().ok()?;
        let designs = shop.designs.clone();
        Some(Self { designs })
    }

    /// Whether it can be used at all, asked once when the pool is built: a place for what takes a moment to find out.
    async fn is_enabled(&self) -> bool {
        !self.designs.is_empty()
    }

    /// The description, where the doc comment of the input is not enough because it depends on the session.
    fn prompt(&self) -> Option<String> {
        let designs = self.designs.join(", ");
        Some(format!(
            "Orders stickers for the person. Designs: {designs}. Ask them for whatever is missing."
        ))
    }

    /// Repairs what models get wrong again and again, before the input is held against the schema.
    fn backfill(&self, input: &mut Value) {
        if input["count"].is_null() {
            input["count"] = json!(1);
        }
    }

    /// Where the call would run. Nothing is read here; what is worked out is kept in the input, so that it is worked
    /// out once.
    fn locate(&self, input: &mut Order, cwd: &Path, _home: Option<&Path>) {
        let file = input.address_file.strip_prefix(cwd);
        input.shown_file = file.unwrap_or(&input.address_file).display().to_string();
    }

    /// What the call touches: what may run beside it, and what must be permitted. More than the truth costs speed, less
    /// than the truth costs safety.
    fn effects(&self, input: &Order) -> Effects {
        Effects {
            reads: Effects::reading([input.address_file.clone()]).reads,
            ..Effects::EXCLUSIVE
        }
    }

    /// What was read out of the input, for an engine that knows the type (that of a command line, say). This is none.
    fn reading(&self, _: &Order) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// What only the session knows, filled in before hooks, rules and people see the call.
    async fn complete(&self, input: &Order, cx: &CallContext) -> Option<Value> {
        let shop = cx.services.get::<Shop>().ok()?;
        Some(json!({
            "design": input.design,
            "count": input.count,
            "address_file": input.address_file,
            "customer": shop.customer,
        }))
    }

    /// Does it make sense? The model reads the error, so it says what to do. Nobody is asked about nonsense.
    async fn check(&self, input: &Order, _: &CallContext) -> Result<Check, ToolError> {
        if !self.designs.contains(&input.design) {
            let designs = self.designs.join(", ");
            return Err(ToolError::Refused(format!(
                "There is no design {:?}. Choose one of: {designs}.",
                input.design
            )));
        }
        Ok(match input.count > 20 {
            true => Check::Ask(format!("{} stickers are a lot", input.count)),
            false => Check::Pass,
        })
    }

    /// The tool's own word on permission, beside rules and mode: an order asks, even where everything else is allowed.
    fn permission(&self, input: &Order, _: &CallContext) -> Permission {
        Permission::Ask(format!("{} stickers are ordered", input.count))
    }

    /// The text in which danger would hide: what a classifier, and the person, should look at.
    fn classifier_input(&self, input: &Order) -> Option<String> {
        Some(format!("order {} × {}", input.count, input.design))
    }

    /// What the person decides about: the form, filled in with what is really there. Only made where someone is asked.
    async fn preview(&self, input: &Order, _: &CallContext) -> Option<Card> {
        let address = std::fs::read_to_string(&input.address_file).ok()?;
        let customer = input.customer.as_deref().unwrap_or("?");
        let form = format!("For {customer}\nTo  {}", address.trim().replace('\n', ", "));
        Some(self.render_use(input)?.with(CardPiece::Text(form)))
    }

    /// Does it. Only ever an admitted call gets here.
    async fn call(&self, input: &Order, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let path = &input.address_file;
        let address = std::fs::read_to_string(path).map_err(|source| ToolError::Read {
            path: path.clone(),
            source,
        })?;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled); // nothing is ordered yet
        }
        cx.progress.report(Update::Step {
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

    /// What the model reads of the output, where that is not its text: here from the structured value.
    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        let number = output.structured.as_ref().map(|value| &value["order"]);
        let number = number.unwrap_or(&Value::Null);
        vec![Content::text(format!("Order {number} is placed."))]
    }

    /// The call as a person sees it before it ran, in lists and questions.
    fn render_use(&self, input: &Order) -> Option<Card> {
        let what = format!("{} × {}", input.count, input.design);
        Some(Card::new("Stickers", what).with_summary(format!("to {}", input.shown_file)))
    }

    /// The result as a person sees it.
    fn render_result(&self, input: &Order, output: &ToolOutput) -> Option<Card> {
        let number = output.structured.as_ref()?.get("order")?;
        Some(
            self.render_use(input)?
                .with_summary(format!("order {number}")),
        )
    }

    /// A failure as a person sees it.
    fn render_error(&self, input: &Order, error: &ToolError) -> Option<Card> {
        let card = self.render_use(input)?.with_summary("nothing was ordered");
        Some(card.with(CardPiece::Alarm(error.to_string())))
    }

    /// A call that was not permitted, as a person sees it.
    fn render_rejected(&self, input: &Order, reason: &str) -> Option<Card> {
        let card = self.render_use(input)?.with_summary("not ordered");
        Some(card.with(CardPiece::Muted(reason.to_owned())))
    }
}

/// The person: shown the form, they order what is not too much.
#[derive(Default)]
struct Person(Mutex<Vec<String>>);

impl Approver for Person {
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

/// Four orders: one that is placed, one of a design there is none of, one that the person does not want, one without an
/// address. What the model reads of each and what the person sees.
pub(crate) async fn run(dir: &Path) -> Result<String, Box<dyn Error>> {
    std::fs::write(dir.join("address.txt"), "1 Main Street\nSpringfield\n")?;
    let person = Arc::new(Person::default());
    let shop = Arc::new(Shop {
        designs: vec!["crab".to_owned(), "gopher".to_owned()],
        customer: "Ann".to_owned(),
        orders: Mutex::default(),
    });
    let mut haft = Haft::builder(dir)
        .tool(StickerRequest::default())
        .service(Arc::clone(&shop))
        .approver(Arc::<Person>::clone(&person))
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
    let seen = person.0.lock().unwrap_or_else(PoisonError::into_inner);
    text += &format!("The person was asked:\n{}", seen.join("\n"));
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
