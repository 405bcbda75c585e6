//! `GET /operator/sales/{sale}/figures`: an operator reads the metrics of a sale's last minutes.

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::StoreError;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::figures::{FiguresReply, minutes};
use shared::http::identity::{Operator, Scope};
use shared::http::respond::{Answer, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::{Problem, checks, edge};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = answer(app, &request, Timestamp::now());
    edge::answer(app, Function::Figures, &request, work).await
}

async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    let Ok(Route::OperatorFigures(sale)) = Route::from_request(request) else {
        return refuse(NoRoute);
    };
    respond(figures(app, request, sale, now)).await
}

/// Shows the figures of a sale to an operator with the scope `onsale/watch`.
async fn figures(
    app: &App,
    request: &Request,
    sale: SaleId,
    now: Timestamp,
) -> Result<Answer<FiguresReply>, Problem> {
    Operator::with_scope(request, app.operator_issuer(), Scope::Watch)?;
    let minutes = minutes(request)?;
    checks::sale(&app.ports, &sale).await?;
    let none = || StoreError::Unavailable("nothing keeps the metrics".to_owned());
    let figures = app.figures().ok_or_else(none)?.read(&sale, minutes, now).await?;
    Ok(Answer(FiguresReply::new(sale, &figures)))
}
